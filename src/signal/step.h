/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a walk: look the pc up, execute its rule, or guess where there is none. */
#ifndef PM_SIGNAL_STEP_H
#define PM_SIGNAL_STEP_H

#include "signal/cpu.h"
#include "signal/probe.h"
#include "signal/table.h"
#include "signal/walk.h"

/* The frame a walk stands in, and the stack it may read. */
struct pm_cursor {
  const struct pm_tables *tables;
  struct pm_pc_cache *cache;
  struct pm_registers registers;
  uintptr_t hi;
  bool probe;       /* the bounds are not certain: ask the kernel for each page */
  bool interrupted; /* pc is where a signal struck, not a return address */
  bool guessed;     /* this step came from a guess */
  struct pm_probe pages;
};

enum pm_step {
  PM_STEP_CALLER, /* the cursor stands in the caller now; *cfa is set */
  PM_STEP_ROOT,   /* no caller; *cfa is set when it is known */
  PM_STEP_BAD,    /* a rule led outside the stack */
  PM_STEP_NO_RULE,
  PM_STEP_LOST, /* the pc is no code at all: the frame before led astray */
};

void pm__step_begin(struct pm_cursor *cursor, const struct pm_tables *tables,
                    struct pm_pc_cache *cache, struct pm_registers registers,
                    struct pm_stack stack);

/* From the cursor's frame, whose CFA goes to *cfa (0: not known), to its caller. */
enum pm_step pm__step_next(struct pm_cursor *cursor, uintptr_t *cfa);

/* For the parts of a step. The rule at the cursor's pc: */
struct pm_rule pm__step_rule(struct pm_cursor *cursor);
/* Execute it; NONE and ROOT are not for here. */
enum pm_step pm__step_execute(struct pm_cursor *cursor, struct pm_rule rule, uintptr_t *cfa);
enum pm_step pm__step_odd(struct pm_cursor *cursor, struct pm_rule rule, uintptr_t *cfa);
enum pm_step pm__step_guess(struct pm_cursor *cursor, uintptr_t *cfa);

/* A word of the stack at or above the frame's stack pointer; false outside of it. */
bool pm__step_read(struct pm_cursor *cursor, uintptr_t address, uintptr_t *value);

/* The address whose rule and function count: inside the call, for a return address. */
static inline uintptr_t pm__step_lookup_pc(const struct pm_cursor *cursor) {
  return cursor->registers.pc - !cursor->interrupted;
}

#endif /* PM_SIGNAL_STEP_H */
