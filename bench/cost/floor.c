/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor: a callback of the same kind as the profiler's own that does nothing.
 * What it costs is what any profiler pays that asks sys.monitoring for these events.
 * subjects.py loads this with ctypes and registers it.
 */
#include "python/callable.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED PyObject *floor_callable(void);

static PyObject *nothing(PyObject *callable, PyObject *const *args, size_t nargsf,
                         PyObject *kwnames) {
  (void)callable, (void)args, (void)nargsf, (void)kwnames;
  return pm__api_none();
}

/* A new reference; NULL, with no exception, where this is no CPython that we know. */
EXPORTED PyObject *floor_callable(void) {
  return pm__api_load() == NULL ? pm__callable_new(nothing) : NULL;
}
