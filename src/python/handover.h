/* SPDX-License-Identifier: Apache-2.0 */
/* Texts with fields, handed to Python's logging on the main thread (pm__python_log_ask). */
#ifndef PM_PYTHON_HANDOVER_H
#define PM_PYTHON_HANDOVER_H

/*
 * On the main thread, in an event: CPython 3.12 does not see a pending call that another
 * thread has added before it next waits for the GIL, but one of its own it does.
 */
void pm__handover_remind(void);
/* In a forked child, before anything else runs. AS-safe. */
void pm__handover_forked(void);
/* The interpreter is gone, and our function with it. */
void pm__handover_orphan(void);

#endif /* PM_PYTHON_HANDOVER_H */
