/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Greenlets: several Python stacks take turns on one thread, and no event tells
 * of a switch. greenlet.settrace does, thread by thread.
 */
#ifndef PM_PYTHON_GREENLETS_H
#define PM_PYTHON_GREENLETS_H

#include "python/api.h"
#include "python/local.h"

/* At a start: makes what is needed and looks whether greenlets are there already. With the GIL. */
void pm__greenlets_start(void);

/* A code of this module was registered: is it the sign that greenlets are being imported? */
void pm__greenlets_notice(const char *module);

/*
 * Sets the trace function of the calling thread, if greenlets are about and it
 * is not set yet. The thread's earlier one is called from ours from then on.
 */
void pm__greenlets_watch(struct pm_python_thread *thread);

/* The interpreter is gone, and our callable with it. */
void pm__greenlets_orphan(void);

#endif /* PM_PYTHON_GREENLETS_H */
