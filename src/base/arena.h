/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back all at once. Owner: one thread at a time. */
#ifndef PM_BASE_ARENA_H
#define PM_BASE_ARENA_H

#include "base/base.h"

struct pm_arena {
  struct pm_arena_block *blocks;
  bool failed; /* an allocation was refused; what was handed out stays valid */
};

/* `count` zeroed elements, aligned to 16; NULL (and `failed`) when memory is short. */
void *pm__arena_take(struct pm_arena *arena, size_t count, size_t size);
/* A copy of the string; "" when memory is short. */
const char *pm__text_copy(struct pm_arena *arena, const char *text);
/* printf into the arena; "" when memory is short. */
const char *pm__text_format(struct pm_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void pm__arena_free(struct pm_arena *arena);

#endif /* PM_BASE_ARENA_H */
