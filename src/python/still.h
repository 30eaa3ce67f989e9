/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other threads' frames where no GIL keeps them still: CPython stops its threads for
 * PyUnstable_GC_VisitObjects, and while it does, their frames are read.
 *
 * In a stop nobody else runs Python, and whoever was stopped may hold any of CPython's
 * locks, that of the list of threads for certain. So nothing is called there that may
 * take one: frames are followed, and references counted. Codes are registered between
 * two stops; in the second, only a thread that stands where it stood is given a stack.
 *
 * The caller is the one thread of pm__late_threads, with the session live.
 */
#ifndef PM_PYTHON_STILL_H
#define PM_PYTHON_STILL_H

#include "python/local.h"

/* Nothing below does anything on an interpreter where this is not known to work. */
void pm__still_begin(void);

/* The thread shall have its shadow filled. */
void pm__still_want(struct pm_shadow *shadow, unsigned long ident);

/*
 * Fills the shadows of those wanted that have raised no event yet and stay where they
 * are for two stops. Drops all wishes.
 */
void pm__still_seed(struct pm_python_thread *self);

#endif /* PM_PYTHON_STILL_H */
