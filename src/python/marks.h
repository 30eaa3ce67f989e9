/* SPDX-License-Identifier: Apache-2.0 */
/* Marks for frames that were found by a walk, not by their events. */
#ifndef PM_PYTHON_MARKS_H
#define PM_PYTHON_MARKS_H

#include "signal/shadow.h"

/*
 * Gives the unmarked frames at the root of the caller's shadow their native
 * frames, where there is no choice: one interpreter frame runs them all, or each
 * has its own. Otherwise, and where the native walk does not reach the root, they
 * stay unmarked and are merged by order. Owner only.
 */
void pm__marks_complete(struct pm_shadow *shadow);

#endif /* PM_PYTHON_MARKS_H */
