/* SPDX-License-Identifier: Apache-2.0 */
/* What a Python thread keeps for its callbacks: found codes, call counters, code identities. */
#ifndef PM_PYTHON_LOCAL_H
#define PM_PYTHON_LOCAL_H

#include "base/base.h"
#include "python/api.h"
#include "python/entries.h"
#include "python/stack.h"
#include "python/untold.h"
#include "signal/shadow.h"

enum {
  PM_CELL_CHUNK = 256,
  PM_CELL_CHUNKS = PM_CODES_MAX / PM_CELL_CHUNK + 1, /* ids go from 0 to PM_CODES_MAX */
};

/* No session has this number: the thread's next event takes its cold path. */
#define PM_HOT_NEVER UINT32_MAX

struct pm_cell_chunk {
  _Atomic uint64_t cells[PM_CELL_CHUNK];
};

/*
 * Owner:    the thread itself, in its callbacks; freed by its pthread destructor.
 * Readers:  local.c under the list's mutex: cells and the counters of misses.
 * Ordering: counters are single-writer and relaxed; a chunk's pointer is
 *           published with release after the chunk was zeroed.
 */
struct pm_python_thread {
  uint32_t hot;     /* the session in which the hot path may run: it has a seeded shadow */
  uint32_t session; /* the session the rest of this block belongs to */
  struct pm_shadow *shadow; /* NULL: no slot left, only calls are counted */
  struct pm_entries entries;
  int8_t framed; /* of entries until more is known: 0 where any distance is not known */
  uintptr_t distance[PM_EVENT_KINDS]; /* 0: not known */
  struct pm_untold untold;
  _Atomic uint64_t met;    /* codes that were not among the entries */
  _Atomic uint64_t missed; /* of them those met by an event that entered */
  int32_t tid;
  bool doubtful; /* frames may have come or gone unseen: the next event walks them */
  uint32_t greenlet_session; /* the session that has set the thread's greenlet trace */
  PyObject *greenlet_trace;  /* the one it had before, to be called by ours; owned */
  bool deep_uneasy; /* one beyond PM_SHADOW_ROOT is or was uneasy: it may have left the ring */
  const void *codes[PM_PYTHON_FRAMES]; /* code object of each shadow slot, perhaps as uneasy */
  _Atomic(struct pm_cell_chunk *) chunks[PM_CELL_CHUNKS];
  struct pm_python_thread *previous, *next; /* under the list's mutex */
};

/* One load to reach it. */
extern __thread struct pm_python_thread *pm__local_self PM_TLS_MODEL;

/* The caller's block, made when needed; NULL without memory. */
struct pm_python_thread *pm__local_own(void);

/*
 * An uneasy frame stands on frames that no event told of, so none may tell when
 * they go. Its code is kept as an address that no code has: the hot path does not
 * know it again, and the cold path takes its leave.
 */
static inline const void *pm__local_uneasy(const void *code) { return (const char *)code + 1; }

/* Is what is kept for a frame this code? */
static inline bool pm__local_is(const void *kept, const void *code) {
  return kept == code || kept == pm__local_uneasy(code);
}

/* What is kept for the innermost frame of the shadow; NULL where it is not in its slot any more. */
static inline const void *pm__local_top(const struct pm_python_thread *thread) {
  uint32_t depth = pm__stack_depth(thread->shadow);
  bool held = depth > 0 && pm__stack_holds(thread->shadow, depth - 1);
  return held ? thread->codes[pm__stack_slot(depth - 1)] : NULL;
}

/* The mark of the innermost frame; 0 when there is none, or it has none. */
static inline uint64_t pm__local_outer(const struct pm_python_thread *thread) {
  uint32_t depth = pm__stack_depth(thread->shadow);
  return depth == 0 ? 0 : thread->shadow->frames[pm__stack_slot(depth - 1)].mark;
}

/* Does the innermost frame of the shadow run what the one below it runs? */
static inline bool pm__local_recurs(const struct pm_python_thread *thread) {
  uint32_t depth = pm__stack_depth(thread->shadow);
  if (depth < 2 || !pm__stack_holds(thread->shadow, depth - 2)) return depth > PM_SHADOW_ROOT;
  const struct pm_shadow_frame *frames = thread->shadow->frames;
  return frames[pm__stack_slot(depth - 1)].code == frames[pm__stack_slot(depth - 2)].code;
}

/*
 * Is the innermost frame of the shadow the one that the native frame at `mark` runs? Where
 * code calls itself through C that alone tells a frame from the one that called it.
 */
static inline bool pm__local_runs_top(const struct pm_python_thread *thread, uint64_t mark) {
  uint64_t top = pm__local_outer(thread);
  if (PM_LIKELY(top == mark) || mark == 0) return true;
  return top == 0 && !pm__local_recurs(thread);
}

/* May the frame that unwinds, at the instruction at `offset`, never have entered? */
static inline bool pm__local_may_be_untold(const struct pm_code_entry *entry, long offset) {
  enum { NEAR = 4 }; /* bytes: the instruction and what the interpreter keeps behind it */
  long after = offset - entry->start;
  return entry->start < 0 || entry->suspends || (after >= 0 && after <= NEAR);
}

/* The thread's call counter of a code id; without memory, the one of unknown codes. */
_Atomic uint64_t *pm__local_cell(struct pm_python_thread *thread, uint32_t id);

/* Calls of an id over all threads, dead ones too. Any thread. */
uint64_t pm__counters_calls(uint32_t id);
/* Look-ups in vain, over all threads: see `met` and `missed`. Any thread. */
void pm__counters_lookups(uint64_t *met, uint64_t *missed);
/* Sets all counters to zero. No session may be running. */
void pm__counters_reset(void);

/* In a forked child: unlocks, and forgets the threads that did not come along. AS-safe. */
void pm__local_forked(void);

#endif /* PM_PYTHON_LOCAL_H */
