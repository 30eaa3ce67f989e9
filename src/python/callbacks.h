/* SPDX-License-Identifier: Apache-2.0 */
/* What the interpreter calls at each of the six events. */
#ifndef PM_PYTHON_CALLBACKS_H
#define PM_PYTHON_CALLBACKS_H

#include "python/api.h"
#include "signal/shadow.h"

/* By enum pm_event. They never raise, keep a pending exception, and return None always. */
extern const pm_vectorcall pm__callbacks[PM_EVENT_KINDS];

#endif /* PM_PYTHON_CALLBACKS_H */
