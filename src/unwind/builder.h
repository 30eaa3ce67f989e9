/* SPDX-License-Identifier: Apache-2.0 */
/* Collects one object's rows in pc order and packs them into an immutable table. */
#ifndef PM_UNWIND_BUILDER_H
#define PM_UNWIND_BUILDER_H

#include "base/base.h"
#include "signal/table.h"

/* What the CFI says of one row: where the caller's values are. */
struct pm_frame_state {
  struct pm_place cfa, ra, fp, aux, sp;
};

/* A table and all it points to, in one mapping. Never written after it was made, but for the count. */
struct pm_compiled {
  struct pm_table table;
  uint32_t rejected;   /* FDEs that did not parse */
  uint32_t references; /* the registry and the snapshots that hold it; under the registry's lock */
  size_t bytes; /* of the mapping */
};

struct pm_builder {
  uintptr_t lo, hi; /* the object's text */
  struct pm_row *row;
  uint32_t rows, row_capacity;
  struct pm_odd_rule *odd;
  uint32_t odds, odd_capacity;
  struct pm_function *function;
  uint32_t functions, function_capacity;
  uint32_t rejected;
  bool out_of_memory;
};

/* lo < hi <= lo + 4 GiB */
void pm__builder_begin(struct pm_builder *builder, uintptr_t lo, uintptr_t hi);

/* Opens a function; false when it overlaps the one before or leaves the text. */
bool pm__builder_function(struct pm_builder *builder, uintptr_t start, uintptr_t end);

/* From pc on `state` holds. pcs never go down. */
void pm__builder_row(struct pm_builder *builder, uintptr_t pc, const struct pm_frame_state *state,
                     bool signal);

/* From pc on there is no rule. */
void pm__builder_gap(struct pm_builder *builder, uintptr_t pc);

/* The table; NULL when memory ran out. Frees what the builder holds either way. */
struct pm_compiled *pm__builder_finish(struct pm_builder *builder);

void pm__compiled_free(struct pm_compiled *compiled);

#endif /* PM_UNWIND_BUILDER_H */
