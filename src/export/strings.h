/* SPDX-License-Identifier: Apache-2.0 */
/* strings.h: pprof's table of texts, each text once; index 0 is "". */
#ifndef PM_EXPORT_STRINGS_H
#define PM_EXPORT_STRINGS_H

#include "base/arena.h"

/* Start with {.arena = ...}. Texts belong to the arena, or outlive the table. */
struct pm_strings {
  struct pm_arena *arena;
  const char **texts;
  uint32_t count, room;
  uint32_t *slots; /* hash table: index into texts + 1, 0 = free */
  uint32_t mask;
};

/* The index of the cleaned `text`; 0 when out of memory, which the arena remembers. */
int64_t pm__strings_index(struct pm_strings *strings, const char *text);

#endif /* PM_EXPORT_STRINGS_H */
