/* SPDX-License-Identifier: Apache-2.0 */
/* Events that need more than the hot path does. */
#ifndef PM_PYTHON_COLD_H
#define PM_PYTHON_COLD_H

#include "python/api.h"
#include "signal/shadow.h"

/*
 * Any event, in any state of thread and session, with the callback's arguments
 * and its CFA. Returns None.
 */
PyObject *pm__cold_event(enum pm_event kind, PyObject *const *args, uintptr_t address);

/* Walks the caller's frames into its shadow outside an event. With the GIL, session live. */
void pm__cold_seed_caller(void);

#endif /* PM_PYTHON_COLD_H */
