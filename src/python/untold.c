/* SPDX-License-Identifier: Apache-2.0 */
#include "python/untold.h"

/* Native frames between two Python frames are seldom larger in sum. Beyond: as if not known. */
enum { SPAN_MAX = 16 << 10 };

enum pm_footing pm__untold_between(const struct pm_untold *untold, uint64_t outer, uint64_t mark) {
  if (!untold->any) return PM_FOOTING_FIRM;
  if (outer - mark > SPAN_MAX) return PM_FOOTING_UNKNOWN; /* also where outer is less */
  const uintptr_t doorstep = untold->return_address[PM_UNTOLD_DOORSTEP];
  const uintptr_t thrower = untold->return_address[PM_UNTOLD_THROW];
  uintptr_t place = (uintptr_t)outer - PM_UNTOLD_STEP + untold->remainder;
  for (; place > mark; place -= PM_UNTOLD_STEP) {
    uintptr_t value = *(const uintptr_t *)place;
    if (value == doorstep || value == thrower) return PM_FOOTING_UNTOLD;
  }
  return PM_FOOTING_FIRM;
}

void pm__untold_forget(struct pm_untold *untold) {
  /* Zeroed memory must not be taken for a place that is not known. */
  enum { NEVER = 1 };
  *untold = (struct pm_untold){.doorstep_below = sizeof(uintptr_t)};
  for (int i = 0; i < PM_UNTOLD_PLACES; i++) untold->return_address[i] = NEVER;
}

void pm__untold_learn(struct pm_untold *untold, enum pm_untold_place place, uintptr_t slot,
                      uintptr_t return_address) {
  uintptr_t remainder = slot % PM_UNTOLD_STEP;
  if (untold->any && remainder != untold->remainder) return;
  untold->any = true;
  untold->remainder = remainder;
  untold->return_address[place] = return_address;
}
