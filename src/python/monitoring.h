/* SPDX-License-Identifier: Apache-2.0 */
/* Our place in sys.monitoring. All of it with the GIL; none of it leaves an exception. */
#ifndef PM_PYTHON_MONITORING_H
#define PM_PYTHON_MONITORING_H

#include "base/base.h"

/*
 * Takes a tool id and registers the callbacks, with no event on yet. On failure
 * writes why to `reason`, with everything given back. `lost` is called, with the
 * GIL and at any later time, when somebody else has our callbacks dropped, as
 * free_tool_id does from 3.14 on; also when the interpreter goes.
 */
bool pm__monitoring_attach(char *reason, size_t size, void (*lost)(void));

/* Switches the six events on; false if Python refused, which leaves them off. */
bool pm__monitoring_enable(void);
/* Switches them off, and keeps the id. */
bool pm__monitoring_disable(void);

/*
 * Switches the events off and gives the id back. If it is somebody else's by now,
 * only our callbacks are taken out: up to 3.13 they and the events outlive a
 * free_tool_id and would go on under the next tool's name.
 */
void pm__monitoring_detach(void);

/* Are id, callbacks' name and events still ours? Another tool may have taken them. */
bool pm__monitoring_is_ours(void);

/* -1: none. */
int pm__monitoring_tool(void);

/* The interpreter is gone, and our objects with it. */
void pm__monitoring_orphan(void);

#endif /* PM_PYTHON_MONITORING_H */
