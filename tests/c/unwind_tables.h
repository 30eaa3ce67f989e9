/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up tables and stacks, for tests that feed the walk arrays instead of a real stack. */
#ifndef PM_TESTS_UNWIND_TABLES_H
#define PM_TESTS_UNWIND_TABLES_H

#include <stdlib.h>

#include "signal/walk.h"
#include "unwind/builder.h"
#include "unwind/machine.h"

/* Text that does not exist: nobody may read it. */
enum { TEXT_LO = 0x10000, TEXT_HI = 0x20000 };

static inline struct pm_place place_of(enum pm_place_kind kind, unsigned number, int offset) {
  return (struct pm_place){.kind = (uint8_t)kind, .number = (uint8_t)number, .offset = offset};
}

/* CFA = register + offset, return address below it, all else unchanged. */
static inline struct pm_frame_state state_of(unsigned number, int offset) {
  return (struct pm_frame_state){
      .cfa = place_of(PM_PLACE_REGISTER, number, offset),
      .ra = place_of(PM_PLACE_AT_CFA, 0, -8),
  };
}

/* A snapshot of one object. Free both. */
static inline struct pm_tables *tables_of(const struct pm_compiled *compiled, uintptr_t lo,
                                          uintptr_t hi) {
  struct pm_tables *tables = calloc(1, sizeof *tables + sizeof *tables->span);
  if (!tables) abort();
  tables->generation = 1;
  tables->count = 1;
  tables->span[0] =
      (struct pm_span){.lo = lo, .hi = hi, .table = &compiled->table, .readable = false};
  return tables;
}

/* A walk with room for every frame a test makes. */
struct walked {
  uint64_t pc[PM_NATIVE_FRAMES], cfa[PM_NATIVE_FRAMES];
  struct pm_walk walk;
};

static inline struct pm_walk *walk_into(struct walked *walked, uint32_t capacity) {
  walked->walk = (struct pm_walk){.pc = walked->pc, .cfa = walked->cfa, .capacity = capacity};
  return &walked->walk;
}

#endif /* PM_TESTS_UNWIND_TABLES_H */
