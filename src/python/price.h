/* SPDX-License-Identifier: Apache-2.0 */
/* What one event costs in this process: the interpreter's share with our callback's. */
#ifndef PM_PYTHON_PRICE_H
#define PM_PYTHON_PRICE_H

/*
 * Times a loop of calls without events and, once the session is live and the caller's stack
 * seeded, with them. With the GIL, on a thread of the program; some 0.2 ms, once a process.
 */
void pm__price_begin(void);
void pm__price_end(void);
/* The interpreter is gone, and our objects with it. */
void pm__price_orphan(void);

#endif /* PM_PYTHON_PRICE_H */
