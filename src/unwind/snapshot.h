/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers read: made from the registry, published, and freed when nobody reads it. */
#ifndef PM_UNWIND_SNAPSHOT_H
#define PM_UNWIND_SNAPSHOT_H

#include "unwind/registry.h"

/* A published snapshot and the tables it holds. */
struct pm_snapshot {
  struct pm_tables *tables;
  struct pm_compiled **held;
  uint32_t held_count;
  struct pm_snapshot *next; /* retired earlier */
};

/* Of all objects that are alive; NULL: out of memory. */
struct pm_snapshot *pm__snapshot_make(const struct pm_registry *registry, uint32_t generation);
void pm__snapshot_free(struct pm_snapshot *snapshot);

/* Frees those in the list that `in_use` does not hold back; NULL holds back all. */
void pm__snapshot_free_unused(struct pm_snapshot **list,
                              bool (*in_use)(const struct pm_tables *tables));

#endif /* PM_UNWIND_SNAPSHOT_H */
