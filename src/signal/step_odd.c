/* SPDX-License-Identifier: Apache-2.0 */
/* Rules out of the side table: expressions, unusual registers, signal frames. */
#include "signal/step.h"

/* A table row of 16-byte PLT slots: the slot has pushed a word from byte `from` on. */
static uintptr_t plt_push(uintptr_t pc, int32_t from) {
  return (pc & 15) >= (uintptr_t)from ? 8 : 0;
}

/* The value at `place`; `same` is what it is when the frame does not change it. */
static bool value_at(struct pm_cursor *cursor, const struct pm_place *place, uintptr_t cfa,
                     uintptr_t same, uintptr_t *value) {
  const struct pm_registers *registers = &cursor->registers;
  uintptr_t offset = (uintptr_t)(intptr_t)place->offset;
  uintptr_t base = 0;
  if (place->kind >= PM_PLACE_REGISTER && place->kind <= PM_PLACE_PLT &&
      !pm__cpu_register(registers, place->number, &base))
    return false;
  switch ((enum pm_place_kind)place->kind) {
  case PM_PLACE_SAME:
  case PM_PLACE_UNDEFINED: *value = same; return true;
  case PM_PLACE_AT_CFA: return pm__step_read(cursor, cfa + offset, value);
  case PM_PLACE_CFA: *value = cfa + offset; return true;
  case PM_PLACE_REGISTER: *value = base + offset; return true;
  case PM_PLACE_AT_REGISTER:
    if (!pm__step_read(cursor, base + offset, value)) return false;
    *value += (uintptr_t)(intptr_t)place->extra;
    return true;
  case PM_PLACE_PLT: *value = base + offset + plt_push(registers->pc, place->extra); return true;
  case PM_PLACE_UNKNOWN: break;
  }
  return false;
}

/*
 * A CFA must lie above the stack pointer. A signal frame's may lie anywhere, as
 * the handler may run on another stack: where the bounds are known they tell,
 * where they are not every page is asked for anyway.
 */
static bool cfa_holds(const struct pm_cursor *cursor, const struct pm_odd_rule *odd,
                      uintptr_t cfa) {
  if (cfa & 7 || cfa > cursor->hi) return false;
  return cfa > cursor->registers.sp || (odd->signal && cursor->probe && cfa);
}

/* The registers that the kernel kept for the interrupted frame, when they can be read. */
static const void *kept_registers(struct pm_cursor *cursor) {
  uintptr_t word, at = cursor->registers.sp;
  for (uintptr_t i = 0; i < PM_CPU_UCONTEXT_BYTES; i += PM_CPU_UCONTEXT_BYTES - 8)
    if (!pm__step_read(cursor, at + i, &word)) return NULL;
  return (const void *)at; /* the kernel's struct ucontext begins where the handler returned to */
}

enum pm_step pm__step_odd(struct pm_cursor *cursor, struct pm_rule rule, uintptr_t *cfa) {
  const struct pm_span *span = pm__tables_span(cursor->tables, pm__step_lookup_pc(cursor));
  if (!span || !span->table || pm__rule_odd(rule) >= span->table->odds) return PM_STEP_NO_RULE;
  const struct pm_odd_rule *odd = &span->table->odd[pm__rule_odd(rule)];
  struct pm_registers *registers = &cursor->registers;
  uintptr_t frame, pc, fp, aux;
  if (!value_at(cursor, &odd->cfa, 0, 0, &frame) || !cfa_holds(cursor, odd, frame))
    return PM_STEP_BAD;
  if (!value_at(cursor, &odd->ra, frame, 0, &pc) ||
      !value_at(cursor, &odd->fp, frame, registers->fp, &fp) ||
      !value_at(cursor, &odd->aux, frame, registers->aux, &aux))
    return PM_STEP_BAD;
  cursor->interrupted = odd->signal;
  registers->interrupted = odd->signal ? kept_registers(cursor) : NULL;
  registers->pc = pc;
  registers->fp = fp;
  registers->aux = aux;
  registers->sp = *cfa = frame;
  return PM_STEP_CALLER;
}
