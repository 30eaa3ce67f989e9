/* SPDX-License-Identifier: Apache-2.0 */
/* The native stack walk: compiled CFI first, frame pointer and guarded scan where it is missing. */
#ifndef PM_SIGNAL_WALK_H
#define PM_SIGNAL_WALK_H

#include "base/base.h"
#include "signal/cpu.h"
#include "signal/table.h"

enum pm_walk_flag {
  PM_WALK_ROOT = 1 << 0, /* the thread's outermost frame was reached */
  PM_WALK_GUESSED = 1 << 1, /* at least one frame came from the frame pointer or the scan */
  PM_WALK_BAD_CFA = 1 << 2, /* stopped: a rule led outside the stack */
  PM_WALK_NO_RULE = 1 << 3, /* stopped: no CFI and no guess held */
  PM_WALK_LIMIT = 1 << 4, /* stopped: more frames than a walk may take */
};

/*
 * The stack that may be read. `hi` is one past its root end; nothing below the
 * interrupted stack pointer is read. With `probe` the bounds are not known for
 * certain: each page is asked of the kernel before its first read.
 */
struct pm_stack {
  uintptr_t hi;
  bool probe;
};

/*
 * Where a walk writes, leaf first. When the stack is deeper than `capacity`, the
 * first `capacity / 2` frames and the last `capacity / 2` are kept and `skipped`
 * frames are missing between index split - 1 and index split. cfa[i] is the
 * canonical frame address of frame i: the stack pointer of its caller after the
 * return. cfa of the last frame is 0 when it is not known.
 */
struct pm_walk {
  uint64_t *pc;
  uint64_t *cfa;
  uint32_t capacity; /* in: even, >= 2 */
  uint32_t count; /* out */
  uint32_t split; /* out */
  uint32_t skipped; /* out */
  uint32_t flags; /* out: pm_walk_flag */
};

struct pm_pc_cache; /* per thread; see table.h */

/*
 * Walks from `registers` to the root. Async-signal-safe; at most
 * PM_WALK_STEPS_MAX frames. `tables` may be NULL (guesses only); `cache` belongs
 * to the calling thread or is NULL. pc[0] is the interrupted pc itself, the
 * others are return addresses (look them up at pc - 1).
 */
void pm__walk_native(const struct pm_tables *tables, struct pm_pc_cache *cache,
                     struct pm_registers registers, struct pm_stack stack, struct pm_walk *walk);

enum { PM_WALK_STEPS_MAX = 10000 };

#endif /* PM_SIGNAL_WALK_H */
