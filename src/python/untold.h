/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that stand under Python code although no event has told of them. */
#ifndef PM_PYTHON_UNTOLD_H
#define PM_PYTHON_UNTOLD_H

#include "base/base.h"

/*
 * Native calls under which Python code runs on a frame without an event:
 * - the doorstep: from 3.13 on the interpreter looks for signals, garbage and
 *   exceptions from outside right before a frame's START or RESUME, so handlers and
 *   finalisers that run then stand on a frame that has not entered yet;
 * - throw() of a generator that delegates to an object with a throw method in Python:
 *   from 3.14 on (and late 3.13) the generator stands under that method.
 * They are known by their return addresses on the native stack, which calibration
 * learns. 0: there is none, or it is not known.
 */
enum pm_untold_place { PM_UNTOLD_DOORSTEP, PM_UNTOLD_THROW, PM_UNTOLD_PLACES };

struct pm_untold {
  bool any;
  uintptr_t return_address[PM_UNTOLD_PLACES];
  uintptr_t remainder;      /* of their slots' addresses, by PM_UNTOLD_STEP */
  uintptr_t doorstep_below; /* how far that slot lies under the CFA of the frame that enters */
};

/* CFAs are multiples of this, so the slots of return addresses agree in the remainder. */
enum { PM_UNTOLD_STEP = 16 };

enum pm_footing {
  PM_FOOTING_FIRM,    /* between the two is only native code */
  PM_FOOTING_UNTOLD,  /* one of those calls is between them, or its traces are */
  PM_FOOTING_UNKNOWN, /* what lies between them cannot be told */
};

/*
 * What lies between the innermost known frame, run by native frame `outer`, and one
 * run by native frame `mark`, which enters. `outer` may be 0 or of a stack that is gone.
 */
enum pm_footing pm__untold_between(const struct pm_untold *untold, uint64_t outer, uint64_t mark);

/*
 * The quick answer, where the same code entered `before` bytes under its caller's native
 * frame and that was firm: with the same distance the native frames between are the same,
 * but the outer one may be at another place. (That other frames add up to just that,
 * with a doorstep among them, is left to chance.)
 */
static inline bool pm__untold_is_as_before(const struct pm_untold *untold, uint64_t outer,
                                           uint64_t mark, uint32_t before) {
  if (!untold->any) return true;
  if (mark + before != outer) return false;
  const uintptr_t *slot = (const uintptr_t *)((uintptr_t)outer - untold->doorstep_below);
  return *slot != untold->return_address[PM_UNTOLD_DOORSTEP];
}

/* Nothing is known. */
void pm__untold_forget(struct pm_untold *untold);

/* Calibration found the return address of a place in `slot`. */
void pm__untold_learn(struct pm_untold *untold, enum pm_untold_place place, uintptr_t slot,
                      uintptr_t return_address);

#endif /* PM_PYTHON_UNTOLD_H */
