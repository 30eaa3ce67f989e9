/* SPDX-License-Identifier: Apache-2.0 */
/* The published snapshot, and the two searches in it: for the object, for the row. */
#include "signal/table.h"

static _Atomic(const struct pm_tables *) current;

const struct pm_tables *pm__tables_acquire(_Atomic(const struct pm_tables *) *hazard) {
  const struct pm_tables *tables = atomic_load(&current);
  for (;;) {
    atomic_store(hazard, tables);
    /* Only when it is still the newest was the hazard seen by whoever wants to free it. */
    const struct pm_tables *again = atomic_load(&current);
    if (again == tables) return tables;
    tables = again;
  }
}

void pm__tables_release(_Atomic(const struct pm_tables *) *hazard) {
  atomic_store_explicit(hazard, NULL, memory_order_release);
}

const struct pm_tables *pm__tables_publish(const struct pm_tables *tables) {
  return atomic_exchange(&current, tables);
}

const struct pm_span *pm__tables_span(const struct pm_tables *tables, uintptr_t pc) {
  if (!tables) return NULL;
  uint32_t low = 0, high = tables->count;
  while (low < high) { /* the first span whose end lies behind pc */
    uint32_t middle = low + (high - low) / 2;
    if (tables->span[middle].hi > pc) high = middle;
    else low = middle + 1;
  }
  if (low == tables->count || pc < tables->span[low].lo) return NULL;
  return &tables->span[low];
}

struct pm_rule pm__table_rule(const struct pm_span *span, uintptr_t pc) {
  static const struct pm_rule none = {PM_RULE_NONE, 0, 0};
  const struct pm_table *table = span->table;
  if (!table) return none;
  uint32_t offset = (uint32_t)(pc - span->lo);
  uint32_t bucket = offset >> PM_BUCKET_SHIFT;
  if (bucket >= table->buckets) return none;
  uint32_t low = table->bucket[bucket], high = table->bucket[bucket + 1];
  while (low < high) { /* the first row behind pc */
    uint32_t middle = low + (high - low) / 2;
    if (table->row[middle].pc > offset) high = middle;
    else low = middle + 1;
  }
  return low ? table->row[low - 1].rule : none;
}

const struct pm_function *pm__table_function(const struct pm_span *span, uintptr_t pc) {
  const struct pm_table *table = span->table;
  if (!table) return NULL;
  uint32_t offset = (uint32_t)(pc - span->lo), low = 0, high = table->functions;
  while (low < high) { /* the first function that begins behind pc */
    uint32_t middle = low + (high - low) / 2;
    if (table->function[middle].start > offset) high = middle;
    else low = middle + 1;
  }
  if (!low || offset >= table->function[low - 1].end) return NULL;
  return &table->function[low - 1];
}
