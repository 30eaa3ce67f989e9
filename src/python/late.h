/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that were running before the session: a late attach must not find them empty. */
#ifndef PM_PYTHON_LATE_H
#define PM_PYTHON_LATE_H

#include "python/api.h"

/*
 * Names the Python threads and fills their shadows from sys._current_frames, in
 * case they make no call for long; each replaces that at its own first event.
 * Without a GIL see still.h. With the GIL, session live.
 */
void pm__late_threads(bool free_threaded);

/* sys._current_frames(): {ident: innermost frame}. New reference, NULL without memory. */
PyObject *pm__late_frames(void);
/* One of them, a new reference; NULL: there is none. */
PyObject *pm__late_frame(PyObject *frames, unsigned long ident);

#endif /* PM_PYTHON_LATE_H */
