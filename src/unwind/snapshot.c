/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/snapshot.h"

#include <stdlib.h>

static int by_address(const void *left, const void *right) {
  const struct pm_span *a = left, *b = right;
  return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static struct pm_span span_of(const struct pm_loaded *loaded) {
  return (struct pm_span){
      .lo = loaded->image.text_lo,
      .hi = loaded->image.text_hi,
      .table = loaded->compiled ? &loaded->compiled->table : NULL,
      .object = loaded,
      .readable = loaded->image.text_readable,
  };
}

static void fill(struct pm_snapshot *snapshot, const struct pm_registry *registry) {
  struct pm_tables *tables = snapshot->tables;
  for (struct pm_loaded *loaded = registry->first; loaded; loaded = loaded->next) {
    if (!loaded->alive) continue;
    tables->span[tables->count++] = span_of(loaded);
    if (loaded->compiled)
      snapshot->held[snapshot->held_count++] = pm__compiled_hold(loaded->compiled);
  }
  qsort(tables->span, tables->count, sizeof *tables->span, by_address);
}

struct pm_snapshot *pm__snapshot_make(const struct pm_registry *registry, uint32_t generation) {
  struct pm_snapshot *snapshot = calloc(1, sizeof *snapshot);
  if (!snapshot) return NULL;
  snapshot->tables =
      calloc(1, sizeof *snapshot->tables + registry->alive * sizeof *snapshot->tables->span);
  snapshot->held = calloc((size_t)registry->alive + 1, sizeof(struct pm_compiled *));
  if (!snapshot->tables || !snapshot->held) {
    pm__snapshot_free(snapshot);
    return NULL;
  }
  snapshot->tables->generation = generation;
  fill(snapshot, registry);
  return snapshot;
}

void pm__snapshot_free(struct pm_snapshot *snapshot) {
  if (!snapshot) return;
  for (uint32_t i = 0; i < snapshot->held_count; i++) pm__compiled_release(snapshot->held[i]);
  free(snapshot->held);
  free(snapshot->tables);
  free(snapshot);
}

void pm__snapshot_free_unused(struct pm_snapshot **list,
                              bool (*in_use)(const struct pm_tables *tables)) {
  while (*list && in_use) {
    struct pm_snapshot *snapshot = *list;
    if (in_use(snapshot->tables)) {
      list = &snapshot->next;
      continue;
    }
    *list = snapshot->next;
    pm__snapshot_free(snapshot);
  }
}
