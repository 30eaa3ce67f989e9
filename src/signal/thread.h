/* SPDX-License-Identifier: Apache-2.0 */
/* The block a sampled thread has: all that its handler reads and writes. */
#ifndef PM_SIGNAL_THREAD_H
#define PM_SIGNAL_THREAD_H

#include "base/base.h"
#include "signal/ring.h"
#include "signal/shadow.h"
#include "signal/table.h"

/* Why a signal did not become a stored sample, in the order of the diagnostics. */
#define PM_LOST_MAP(X)                                                          \
  X(INACTIVE, "inactive")       /* the session was not running any more */      \
  X(RING_FULL, "ring_full")     /* the collector was behind */                  \
  X(NESTED, "nested")           /* the handler was interrupted by itself */     \
  X(NO_THREAD, "unknown_thread") /* process timer hit a thread not yet known */ \
  X(NO_TIME, "no_cpu_time")     /* the thread's CPU clock had not moved */

enum pm_lost {
#define PM_LOST_ENUM(name, text) PM_LOST_##name,
  PM_LOST_MAP(PM_LOST_ENUM)
#undef PM_LOST_ENUM
      PM_LOST_KINDS
};

enum pm_thread_state {
  PM_THREAD_FREE, /* in the pool */
  PM_THREAD_LIVE,
  PM_THREAD_DEAD, /* has ended; waits for its last records to be drained */
};

/*
 * Owner:    the thread (handler side), the sampler (identity, timer), the
 *           collector (ring tail).
 * Readers:  collector.
 * Ordering: counters have one writer, relaxed; `tid` is written before the timer
 *           is armed. Blocks are never unmapped, so a late signal finds one.
 */
struct pm_thread {
  /* First, for it survives the block's thread: handlers inside. As long the block is not reused. */
  _Atomic uint32_t in_handler;
  _Atomic int32_t tid;
  _Atomic(struct pm_thread *) next; /* in the list of its hash; see handler.h */
  _Atomic uint32_t state;        /* pm_thread_state */
  _Atomic uintptr_t stack_lo;    /* known bounds, or 0: the walk probes */
  _Atomic uintptr_t stack_hi;
  _Atomic uintptr_t
      unknown_sp;  /* a stack pointer outside the bounds, for the collector to look up */
  _Atomic(const struct pm_tables *) tables; /* hazard pointer */
  struct pm_pc_cache *cache;     /* owned */
  _Atomic(struct pm_shadow *) shadow; /* NULL: no Python seen on it, or beyond max_threads */
  _Atomic uint64_t last_cpu;     /* thread CPU clock at the end of the last sample, ns */
  _Atomic uint64_t signals;
  _Atomic uint64_t stored;
  _Atomic uint64_t lost[PM_LOST_KINDS];
  _Atomic uint64_t lost_ns;      /* CPU that lost samples stood for */
  _Atomic uint64_t handler_ns;   /* CPU spent in the handler */
  _Atomic uint64_t snapshot_failures; /* shadow stack was being rewritten */
  struct pm_ring ring;
};

#endif /* PM_SIGNAL_THREAD_H */
