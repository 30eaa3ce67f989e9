/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects and the ids they get. The reading side is in python.h (pm__code_info). */
#ifndef PM_PYTHON_CODES_H
#define PM_PYTHON_CODES_H

#include "python/api.h"

/*
 * The id of a code object, registered at its first sight: it is then kept alive
 * until the registry is cleared, so that its address keeps its meaning. `globals`
 * are those of a frame that runs it, for its module's name, or NULL. 0: refused (full, or
 * an earlier registration failed). Calls Python's C API; keeps no exception.
 */
uint32_t pm__codes_id(PyObject *code, PyObject *globals);

/* The id of a code that is registered, else 0. Any thread. */
uint32_t pm__codes_find(const void *code);

/* How often a code was refused. */
uint64_t pm__codes_refused(void);

/* Forgets all codes. With `release` their references go too (needs the GIL). */
void pm__codes_clear(bool release);

/* The interpreter is gone, and its objects with it. */
void pm__codes_orphan(void);

/* In a forked child: forgets all without freeing it, for another thread may have been at it. AS-safe. */
void pm__codes_forked(void);

#endif /* PM_PYTHON_CODES_H */
