/* SPDX-License-Identifier: Apache-2.0 */
/* Is our place in sys.monitoring still ours? */
#ifndef PM_PYTHON_PLACE_H
#define PM_PYTHON_PLACE_H

#include "base/base.h"

/*
 * Our callbacks were dropped and get no events any more. No shadow stack is true
 * from then on, and the session's Python part ends here. At the interpreter's end
 * that is no loss. Any thread.
 */
void pm__place_dropped(void);

/* Asks Python, and ends the Python part if need be. In the main interpreter, with its GIL. */
void pm__place_check(void);

/* Why and when (CLOCK_MONOTONIC) the Python part ended; reason NULL: it did not. */
struct pm_place_loss {
  const char *reason;
  uint64_t ns;
};
struct pm_place_loss pm__place_loss(void);
void pm__place_forget_loss(void);

/* In a forked child. AS-safe. */
void pm__place_forked(void);

#endif /* PM_PYTHON_PLACE_H */
