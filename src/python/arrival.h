/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Into Python without being called from it: for a session that began before there
 * was an interpreter, or whose start was not to take any of the program's time.
 */
#ifndef PM_PYTHON_ARRIVAL_H
#define PM_PYTHON_ARRIVAL_H

#include "base/base.h"

/*
 * Called once with the GIL held: on the main thread between two instructions or, where that
 * one runs no Python for long, on a thread of ours (`guest`). False: not now, ask again.
 */
typedef bool (*pm_arrival)(bool guest);

/* From here on pm__arrival_round asks. Unwind tables for the interpreter are there. */
void pm__arrival_begin(pm_arrival let_in);
/* Nobody is let in any more, whatever is still asked for. */
void pm__arrival_end(void);
/* Between begin and end: the answer that comes now is meant for this session. */
bool pm__arrival_is_wanted(void);
/* Is there an interpreter that has not answered yet? */
bool pm__arrival_is_near(void);
/* Looks for the interpreter, and asks it. Collector only; never waits. */
void pm__arrival_round(uint64_t now);

/* Looks CPython up now if it is in plain sight: what the calls below need. */
void pm__arrival_glance(void);
/*
 * For pthread_atfork(3), in the parent: a child that is forked before Python has let us
 * in gets no event to begin at, so it takes a request along. It is answered in the
 * child only, by hooks->in_forked_child.
 */
void pm__arrival_before_fork(void);
void pm__arrival_forked(void);

#endif /* PM_PYTHON_ARRIVAL_H */
