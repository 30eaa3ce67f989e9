/* SPDX-License-Identifier: Apache-2.0 */
/* C functions as Python callables. */
#ifndef PM_PYTHON_CALLABLE_H
#define PM_PYTHON_CALLABLE_H

#include "python/api.h"

/*
 * A new callable that calls `function` by vectorcall; NULL if it cannot be had,
 * with no exception set. With the GIL.
 */
PyObject *pm__callable_new(pm_vectorcall function);

/*
 * A callable that does nothing, and calls `gone` when the last reference to it is
 * dropped: whoever holds it cannot let go of it unseen. As above.
 */
PyObject *pm__callable_canary(void (*gone)(void));

/* The interpreter is gone, and the type of the callables with it. */
void pm__callable_orphan(void);

#endif /* PM_PYTHON_CALLABLE_H */
