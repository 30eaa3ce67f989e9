/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that were running before the session: a late attach must not find them empty. */
#ifndef PM_PYTHON_LATE_H
#define PM_PYTHON_LATE_H

#include "base/base.h"

/*
 * Names the Python threads and fills their shadows from sys._current_frames, in
 * case they stay in native code; each replaces that at its own first event. On
 * free-threaded builds another thread's frames may not be walked: names only.
 * With the GIL, session live.
 */
void pm__late_threads(bool free_threaded);

#endif /* PM_PYTHON_LATE_H */
