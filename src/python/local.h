/* SPDX-License-Identifier: Apache-2.0 */
/* What a Python thread keeps for its callbacks: found codes, call counters, code identities. */
#ifndef PM_PYTHON_LOCAL_H
#define PM_PYTHON_LOCAL_H

#include "base/base.h"
#include "python/api.h"
#include "python/stack.h"
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
  _Atomic uint64_t cache_hits;
  _Atomic uint64_t cache_misses;
  int32_t tid;
  bool doubtful; /* switches may have gone unseen: the next event walks the frames */
  uint32_t greenlet_session; /* the session that has set the thread's greenlet trace */
  PyObject *greenlet_trace;  /* the one it had before, to be called by ours; owned */
  const void *codes[PM_PYTHON_FRAMES]; /* code object of each shadow slot */
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

/* Is the innermost frame of the shadow one of `code`? Not when it is not in its slot any more. */
static inline bool pm__local_top_is(const struct pm_python_thread *thread, const void *code) {
  uint32_t depth = pm__stack_depth(thread->shadow);
  return depth > 0 && pm__stack_holds(thread->shadow, depth - 1) &&
         thread->codes[pm__stack_slot(depth - 1)] == code;
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
