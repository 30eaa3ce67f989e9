/* SPDX-License-Identifier: Apache-2.0 */
/* What a Python thread keeps for its callbacks: found codes, call counters, code identities. */
#ifndef PM_PYTHON_LOCAL_H
#define PM_PYTHON_LOCAL_H

#include "base/base.h"
#include "python/api.h"
#include "python/stack.h"
#include "python/untold.h"
#include "signal/shadow.h"

enum {
  PM_CODE_CACHE_BITS = 9,
  PM_CODE_CACHE = 1 << PM_CODE_CACHE_BITS,
  PM_CELL_CHUNK = 256,
  PM_CELL_CHUNKS = PM_CODES_MAX / PM_CELL_CHUNK + 1, /* ids go from 0 to PM_CODES_MAX */
};

/* A code object this thread has met. NULL code: an empty entry. */
struct pm_code_entry {
  const void *code;
  _Atomic uint64_t *calls; /* this thread's cell for it */
  uint32_t id;
  uint32_t span; /* from its native frame up to its caller's when that last was firm (untold.h) */
  int32_t start; /* offset of the instruction that raises PY_START, -1: not known */
  bool suspends; /* a generator, coroutine or asynchronous generator */
  bool frameless; /* its events come from C (Cython): no interpreter frame runs it */
};

struct pm_cell_chunk {
  _Atomic uint64_t cells[PM_CELL_CHUNK];
};

/*
 * Owner:    the thread itself, in its callbacks; freed by its pthread destructor.
 * Readers:  counters.c under the list's mutex: cells and the two cache counters.
 * Ordering: counters are single-writer and relaxed; a chunk's pointer is
 *           published with release after the chunk was zeroed.
 */
struct pm_python_thread {
  uint32_t hot;     /* the session in which the hot path may run: it has a seeded shadow */
  uint32_t session; /* the session the rest of this block belongs to */
  struct pm_shadow *shadow;          /* NULL: no slot left, only calls are counted */
  uintptr_t distance[PM_EVENT_KINDS]; /* 0: not known */
  struct pm_untold untold;
  _Atomic uint64_t cache_hits;
  _Atomic uint64_t cache_misses;
  int32_t tid;
  bool doubtful; /* frames may have come or gone unseen: the next event walks them */
  uint32_t greenlet_session; /* the session that has set the thread's greenlet trace */
  PyObject *greenlet_trace;  /* the one it had before, to be called by ours; owned */
  bool deep_uneasy; /* one beyond PM_SHADOW_ROOT is or was uneasy: it may have left the ring */
  const void *codes[PM_PYTHON_FRAMES]; /* code object of each shadow slot, perhaps as uneasy */
  struct pm_code_entry cache[PM_CODE_CACHE];
  _Atomic(struct pm_cell_chunk *) chunks[PM_CELL_CHUNKS];
  struct pm_python_thread *previous, *next; /* under the list's mutex */
};

/*
 * One load to reach it. A library loaded late gets initial-exec storage from
 * glibc's surplus (8 bytes are no matter there); musl has none, so there the
 * general model is used.
 */
#ifndef PM_TLS_MODEL
#ifdef __GLIBC__
#define PM_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define PM_TLS_MODEL
#endif
#endif
extern __thread struct pm_python_thread *pm__local_self PM_TLS_MODEL;

/* The caller's block, made when needed; NULL without memory. */
struct pm_python_thread *pm__local_own(void);

/* The entry a code has in the cache, whether it holds it or another one. */
static inline struct pm_code_entry *pm__local_entry(struct pm_python_thread *thread,
                                                    const void *code) {
  uint64_t hash = (uint64_t)(uintptr_t)code * UINT64_C(0x9E3779B97F4A7C15);
  return &thread->cache[hash >> (64 - PM_CODE_CACHE_BITS)];
}

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
void pm__counters_cache(uint64_t *hits, uint64_t *misses);
/* Sets all counters to zero. No session may be running. */
void pm__counters_reset(void);

/* In a forked child: unlocks, and forgets the threads that did not come along. AS-safe. */
void pm__local_forked(void);

#endif /* PM_PYTHON_LOCAL_H */
