/* SPDX-License-Identifier: Apache-2.0 */
#include "python/oracle_trail.h"

static __thread struct {
  uint64_t count;
  struct pm_oracle_step steps[PM_ORACLE_TRAIL];
} trail;

void pm__oracle_trail_add(struct pm_oracle_step step) {
  trail.steps[trail.count++ % PM_ORACLE_TRAIL] = step;
}

const struct pm_oracle_step *pm__oracle_trail(uint32_t back) {
  if (back >= PM_ORACLE_TRAIL || back >= trail.count) return NULL;
  return &trail.steps[(trail.count - 1 - back) % PM_ORACLE_TRAIL];
}
