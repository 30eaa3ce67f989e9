/* SPDX-License-Identifier: Apache-2.0 */
/* The last events of each thread, to tell how a difference came about. Part of the oracle build. */
#ifndef PM_PYTHON_ORACLE_TRAIL_H
#define PM_PYTHON_ORACLE_TRAIL_H

#include "signal/shadow.h"

enum { PM_ORACLE_TRAIL = 24 };

/* One event, and the shadow after it. */
struct pm_oracle_step {
  enum pm_event kind;
  const void *code;
  long offset; /* of the instruction, in bytes; THROW has none that means anything */
  uintptr_t caller; /* CFA of the callback */
  uint32_t depth; /* of the shadow */
  uint64_t top; /* mark of its innermost frame */
};

/* Keeps a step of the calling thread, in place of its oldest one. */
void pm__oracle_trail_add(struct pm_oracle_step step);

/* A step of the calling thread, 0 the newest. NULL: there were not that many. */
const struct pm_oracle_step *pm__oracle_trail(uint32_t back);

#endif /* PM_PYTHON_ORACLE_TRAIL_H */
