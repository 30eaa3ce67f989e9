/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread keeps of the code objects it has met: a hash table that grows until a
 * call finds its code at the first place, nearly always. Owner only: no lock, and no
 * reader from another thread or from a signal handler.
 */
#ifndef PM_PYTHON_ENTRIES_H
#define PM_PYTHON_ENTRIES_H

#include "base/base.h"

/* A code object. NULL code: an empty place. */
struct pm_code_entry {
  const void *code;
  _Atomic uint64_t *calls; /* this thread's cell for it */
  uint32_t id;
  uint32_t span; /* from its native frame up to its caller's when that last was firm (untold.h) */
  int32_t start; /* offset of the instruction that raises PY_START, -1: not known */
  bool suspends; /* a generator, coroutine or asynchronous generator */
  int8_t framed; /* -1: an interpreter frame runs it; 0: its events come from C (Cython) */
};

enum {
  PM_ENTRIES_FIRST = 128,
  PM_ENTRIES_MAX = 4096, /* 128 KB; beyond, codes take each other's places */
  PM_ENTRIES_SPARE = 4,  /* places for each code of which one is taken, until then */
  PM_ENTRIES_PROBES = 4, /* a code is in one of so many places side by side */
};

struct pm_entries {
  struct pm_code_entry *places; /* mask + PM_ENTRIES_PROBES of them */
  uint32_t mask;
  uint32_t used;
};

/* False without memory. */
bool pm__entries_make(struct pm_entries *entries);
void pm__entries_free(struct pm_entries *entries);
/* All are forgotten. */
void pm__entries_clear(struct pm_entries *entries);

/* The first place a code may have, whether it holds it or not. */
static inline struct pm_code_entry *pm__entries_first(const struct pm_entries *entries,
                                                      const void *code) {
  uint64_t hash = (uint64_t)(uintptr_t)code * UINT64_C(0x9E3779B97F4A7C15);
  return &entries->places[(uint32_t)(hash >> 32) & entries->mask];
}

/* The places from the first on; NULL: not there. */
struct pm_code_entry *pm__entries_probe(struct pm_code_entry *first, const void *code);

/* NULL: the thread has not met it. */
static inline struct pm_code_entry *pm__entries_find(const struct pm_entries *entries,
                                                     const void *code) {
  struct pm_code_entry *first = pm__entries_first(entries, code);
  return PM_LIKELY(first->code == code) ? first : pm__entries_probe(first, code);
}

/* A place for a code that is not there, all zero but its `code`. Others may have moved. */
struct pm_code_entry *pm__entries_add(struct pm_entries *entries, const void *code);

#endif /* PM_PYTHON_ENTRIES_H */
