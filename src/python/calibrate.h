/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring how far above a callback the interpreter's native frame lies. */
#ifndef PM_PYTHON_CALIBRATE_H
#define PM_PYTHON_CALIBRATE_H

#include "python/api.h"
#include "signal/shadow.h"

/*
 * Runs a few lines of Python and fills the session's distances and the roles,
 * unless an earlier run has found them all.
 * Events must be on and the phase PM_PHASE_CALIBRATING. With the GIL; leaves no
 * exception and no object behind. A distance that cannot be had, or does not
 * hold in every event seen, is 0.
 */
void pm__calibrate_run(void);

/* After lines of ours: what others raised in them comes out later, in the program's own. */
void pm__calibrate_drop_exception(void);

/* Another interpreter may come: what was measured of this one is dropped. */
void pm__calibrate_forget(void);

/* An event while calibrating; those of other threads are passed over. */
void pm__calibrate_event(enum pm_event kind, const void *code, uintptr_t address);

#endif /* PM_PYTHON_CALIBRATE_H */
