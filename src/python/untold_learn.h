/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration's second half: which native calls hide frames (untold.h)? */
#ifndef PM_PYTHON_UNTOLD_LEARN_H
#define PM_PYTHON_UNTOLD_LEARN_H

#include "python/api.h"
#include "python/record.h"

/*
 * Python source that makes Python code run in those calls, for the namespace in
 * which calibration's own has run. NULL where it cannot be tried. The log must
 * stay where it is until the end.
 */
const char *pm__untold_prepare(PyObject *names, const struct pm_event_log *log);

/* An event was just recorded, as the log's last. */
void pm__untold_event(struct pm_event_record *record);

/* The source has run, or failed: from here on no trace of it is left in the thread. */
void pm__untold_finish(void);

/* The distances are known: learns what the records tell, into pm__python_session. */
void pm__untold_conclude(void);

/* The interpreter is gone, and our exception's type with it. */
void pm__untold_orphan(void);

#endif /* PM_PYTHON_UNTOLD_LEARN_H */
