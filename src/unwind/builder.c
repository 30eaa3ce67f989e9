/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/builder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "unwind/encode.h"

enum { FIRST_CAPACITY = 1024, ODD_LOOK_BACK = 32 };

void pm__builder_begin(struct pm_builder *builder, uintptr_t lo, uintptr_t hi) {
  *builder = (struct pm_builder){.lo = lo, .hi = hi};
}

static void *grow(struct pm_builder *builder, void *array, uint32_t capacity, size_t element) {
  void *grown = realloc(array, (size_t)capacity * element);
  if (!grown) builder->out_of_memory = true;
  return grown;
}

static bool room_for_row(struct pm_builder *builder) {
  if (builder->rows < builder->row_capacity) return true;
  uint32_t capacity = builder->row_capacity ? builder->row_capacity * 2 : FIRST_CAPACITY;
  struct pm_row *row = grow(builder, builder->row, capacity, sizeof *row);
  if (!row) return false;
  builder->row = row;
  builder->row_capacity = capacity;
  return true;
}

static bool same_rule(struct pm_rule a, struct pm_rule b) {
  return a.head == b.head && a.fp == b.fp && a.aux == b.aux;
}

static void add_row(struct pm_builder *builder, uintptr_t pc, struct pm_rule rule) {
  uint32_t offset = (uint32_t)(pc - builder->lo), last = builder->rows;
  /* Of two rows for one pc the later one counts. */
  if (last && builder->row[last - 1].pc == offset) last = --builder->rows;
  if (last && same_rule(builder->row[last - 1].rule, rule)) return;
  if (!last && pm__rule_kind(rule) == PM_RULE_NONE) return;
  if (!room_for_row(builder)) return;
  builder->row[last] = (struct pm_row){offset, rule};
  builder->rows++;
}

static bool room_for_odd(struct pm_builder *builder) {
  if (builder->odds < builder->odd_capacity) return true;
  if (builder->odds == PM_ODD_MAX) return false;
  uint32_t capacity = builder->odd_capacity ? builder->odd_capacity * 2 : ODD_LOOK_BACK;
  struct pm_odd_rule *odd = grow(builder, builder->odd, capacity, sizeof *odd);
  if (!odd) return false;
  builder->odd = odd;
  builder->odd_capacity = capacity;
  return true;
}

/* Neighbours often share an odd rule: look a few back before adding one. */
static struct pm_rule odd_rule(struct pm_builder *builder, const struct pm_frame_state *state,
                               bool signal) {
  struct pm_odd_rule odd = {state->cfa, state->ra, state->fp, state->aux, signal};
  if (odd.fp.kind == PM_PLACE_UNKNOWN) odd.fp.kind = PM_PLACE_SAME;
  if (odd.aux.kind == PM_PLACE_UNKNOWN) odd.aux.kind = PM_PLACE_SAME;
  uint32_t from = builder->odds > ODD_LOOK_BACK ? builder->odds - ODD_LOOK_BACK : 0;
  for (uint32_t i = from; i < builder->odds; i++)
    if (!memcmp(&builder->odd[i], &odd, sizeof odd)) return pm__encode_odd(i);
  if (!room_for_odd(builder)) return (struct pm_rule){PM_RULE_NONE, 0, 0};
  builder->odd[builder->odds] = odd;
  return pm__encode_odd(builder->odds++);
}

void pm__builder_row(struct pm_builder *builder, uintptr_t pc, const struct pm_frame_state *state,
                     bool signal) {
  struct pm_rule rule = pm__encode_rule(state, signal);
  if (pm__rule_kind(rule) == PM_RULE_ODD) rule = odd_rule(builder, state, signal);
  add_row(builder, pc, rule);
}

void pm__builder_gap(struct pm_builder *builder, uintptr_t pc) {
  add_row(builder, pc, (struct pm_rule){PM_RULE_NONE, 0, 0});
}

bool pm__builder_function(struct pm_builder *builder, uintptr_t start, uintptr_t end) {
  if (start < builder->lo || end > builder->hi || start >= end) return false;
  uint32_t from = (uint32_t)(start - builder->lo), to = (uint32_t)(end - builder->lo);
  uint32_t count = builder->functions;
  if (count && builder->function[count - 1].end > from) return false;
  if (count == builder->function_capacity) {
    uint32_t capacity = count ? count * 2 : FIRST_CAPACITY;
    struct pm_function *function = grow(builder, builder->function, capacity, sizeof *function);
    if (!function) return false;
    builder->function = function;
    builder->function_capacity = capacity;
  }
  builder->function[builder->functions++] = (struct pm_function){from, to};
  return true;
}

/* bucket[b]: the first row at or behind byte b << PM_BUCKET_SHIFT. */
static void fill_buckets(uint32_t *bucket, uint32_t buckets, const struct pm_row *row,
                         uint32_t rows) {
  uint32_t next = 0;
  for (uint32_t b = 0; b < buckets; b++) {
    while (next < rows && row[next].pc < b << PM_BUCKET_SHIFT) next++;
    bucket[b] = next;
  }
  bucket[buckets] = rows;
}

/* Places one array in the mapping and fills it; every element's size is a multiple of four. */
static void *place(uint8_t **at, const void *array, size_t size) {
  void *placed = *at;
  if (array) memcpy(placed, array, size);
  *at += size;
  return placed;
}

static struct pm_compiled *pack(const struct pm_builder *b) {
  uint32_t buckets = (uint32_t)((b->hi - b->lo + (1 << PM_BUCKET_SHIFT) - 1) >> PM_BUCKET_SHIFT);
  size_t rows = b->rows * sizeof *b->row;
  size_t odds = b->odds * sizeof *b->odd, functions = b->functions * sizeof *b->function;
  size_t index = ((size_t)buckets + 1) * sizeof(uint32_t);
  size_t bytes = sizeof(struct pm_compiled) + rows + odds + functions + index;
  void *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return NULL;
  struct pm_compiled *compiled = mapping;
  uint8_t *at = (uint8_t *)(compiled + 1);
  struct pm_table *table = &compiled->table;
  table->row = place(&at, b->row, rows);
  table->odd = place(&at, b->odd, odds);
  table->function = place(&at, b->function, functions);
  uint32_t *bucket = place(&at, NULL, index);
  fill_buckets(bucket, buckets, b->row, b->rows);
  table->bucket = bucket;
  table->rows = b->rows;
  table->odds = b->odds;
  table->buckets = buckets;
  table->functions = b->functions;
  compiled->rejected = b->rejected;
  compiled->references = 1;
  compiled->bytes = bytes;
  return compiled;
}

struct pm_compiled *pm__builder_finish(struct pm_builder *builder) {
  struct pm_compiled *compiled = builder->out_of_memory ? NULL : pack(builder);
  free(builder->row);
  free(builder->odd);
  free(builder->function);
  return compiled;
}

void pm__compiled_free(struct pm_compiled *compiled) {
  if (compiled) munmap(compiled, compiled->bytes);
}
