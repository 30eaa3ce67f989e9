/* SPDX-License-Identifier: Apache-2.0 */
/* Storage for the names of codes: bounded, freed all at once, equal strings kept once. */
#ifndef PM_PYTHON_INTERN_H
#define PM_PYTHON_INTERN_H

#include "base/arena.h"

enum {
  PM_INTERN_MAX = 1024, /* of the longest string, with its end; callers cut before */
  PM_INTERN_TOTAL = 64 * 1024 * 1024, /* bytes of all */
};

/*
 * Owner:    whoever holds the registry's mutex.
 * Readers:  anyone who got a string; strings never move.
 * Ordering: the mutex.
 */
struct pm_intern {
  struct pm_arena arena;
  struct pm_intern_entry *buckets; /* open addressing */
  uint32_t bucket_count, entry_count;
  uint64_t bytes; /* of strings */
};

/* The kept copy of `string`; NULL without memory or beyond PM_INTERN_TOTAL. */
const char *pm__intern_keep(struct pm_intern *interned, const char *string);
void pm__intern_free(struct pm_intern *interned);

#endif /* PM_PYTHON_INTERN_H */
