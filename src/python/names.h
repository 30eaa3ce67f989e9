/* SPDX-License-Identifier: Apache-2.0 */
/* Python's names of threads. */
#ifndef PM_PYTHON_NAMES_H
#define PM_PYTHON_NAMES_H

#include "python/api.h"

/*
 * Finds the caller's name and hands it to the session; says nothing when Python
 * has none. `root` is the caller's outermost frame or NULL: a thread that has
 * just begun is not in threading's table yet, but stands on that frame.
 */
void pm__names_tell_own(int32_t tid, PyObject *root);

/* Calls `visit` with each thread of the threading module: kernel id, ident, name. */
void pm__names_each(void (*visit)(void *context, int32_t tid, unsigned long ident,
                                  const char *name),
                    void *context);

#endif /* PM_PYTHON_NAMES_H */
