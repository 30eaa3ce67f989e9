/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where no CFI covers the pc: JIT code, assembly kernels, C libraries built
 * without tables. A guess is taken only when what it leads to holds as well, and
 * the walk is flagged PM_WALK_GUESSED.
 */
#include "signal/step.h"

enum { SCAN_WORDS = 16, LOWEST_CODE = 1 << 16 };

/* Is `address` a place a function can return to, in text that is known? */
static bool returns_to_known(struct pm_cursor *cursor, uintptr_t address) {
  const struct pm_span *span = pm__tables_span(cursor->tables, address - 1);
  if (!span || !span->readable || address - span->lo < PM_CPU_CALL_BYTES) return false;
  struct pm_probe text = {0, 0}; /* the object may be unmapped at this very moment */
  return pm__probe_range(&text, address - PM_CPU_CALL_BYTES, PM_CPU_CALL_BYTES) &&
         pm__cpu_follows_call(address);
}

/* A frame record {caller's fp, return address} must lie in the stack, aligned. */
static bool record_fits(const struct pm_cursor *cursor, uintptr_t fp) {
  return !(fp & 7) && fp >= cursor->registers.sp && cursor->hi >= 16 && fp <= cursor->hi - 16;
}

/*
 * Could `pc` be code that nobody told us of (JIT)? It must at least be mapped,
 * and the caller's frame record, `next`, must lie further up.
 */
static bool returns_to_unknown(const struct pm_cursor *cursor, uintptr_t pc, uintptr_t fp,
                               uintptr_t next) {
  if (pc < LOWEST_CODE || pm__tables_span(cursor->tables, pc - 1)) return false;
  return next > fp && record_fits(cursor, next) && pm__probe_page(pc - 1);
}

static void stand_in_caller(struct pm_cursor *cursor, uintptr_t pc, uintptr_t sp, uintptr_t fp) {
  cursor->registers.pc = pc;
  cursor->registers.sp = sp;
  cursor->registers.fp = fp;
  cursor->registers.interrupted = NULL;
  cursor->interrupted = false;
}

static bool frame_pointer_step(struct pm_cursor *cursor, uintptr_t *cfa) {
  uintptr_t fp = cursor->registers.fp, next, pc;
  if (!record_fits(cursor, fp)) return false;
  if (!pm__step_read(cursor, fp, &next) || !pm__step_read(cursor, fp + 8, &pc)) return false;
  if (!returns_to_known(cursor, pc) && !returns_to_unknown(cursor, pc, fp, next)) return false;
  *cfa = fp + 16;
  stand_in_caller(cursor, pc, *cfa, next);
  return true;
}

enum belief {
  UNLIKELY, /* the call there is one to another function */
  LIKELY,
};

static bool is_plt(const struct pm_span *span, uintptr_t pc) {
  struct pm_rule rule = pm__table_rule(span, pc);
  return pm__rule_kind(rule) == PM_RULE_ODD &&
         span->table->odd[pm__rule_odd(rule)].cfa.kind == PM_PLACE_PLT;
}

/*
 * A word on the stack may be left over from an earlier call. Most likely it is
 * when the call before it names its target and that is not the function at
 * `callee`: unless a jump led on from there.
 */
static enum belief calls(const struct pm_cursor *cursor, uintptr_t address, uintptr_t callee) {
  uintptr_t target;
  if (!pm__cpu_call_target(address, &target)) return LIKELY;
  const struct pm_span *span = pm__tables_span(cursor->tables, target);
  if (!span || is_plt(span, target)) return LIKELY;
  if (callee < target || callee >= span->hi) return UNLIKELY;
  /* Of a function without CFI only so much is known: it has none at its start either. */
  return pm__table_function(span, target) == pm__table_function(span, callee) ? LIKELY : UNLIKELY;
}

/* Does the caller's own rule, with these registers, lead to a call again, or to the root? */
static bool caller_holds(const struct pm_cursor *caller, enum belief least) {
  struct pm_cursor beyond = *caller;
  struct pm_rule rule = pm__step_rule(&beyond);
  unsigned kind = pm__rule_kind(rule);
  uintptr_t cfa;
  if (kind == PM_RULE_NONE || kind == PM_RULE_ROOT) return true;
  if (pm__step_execute(&beyond, rule, &cfa) != PM_STEP_CALLER) return false;
  uintptr_t pc = beyond.registers.pc;
  return returns_to_known(&beyond, pc) && calls(&beyond, pc, pm__step_lookup_pc(caller)) >= least;
}

/*
 * The frame may have saved its caller's frame pointer between `base` and the
 * return address at `slot`, and use rbp for something else: try what looks like
 * one. A caller that does not need it holds with any.
 */
static bool try_return(struct pm_cursor *cursor, uintptr_t base, uintptr_t slot, uintptr_t pc,
                       enum belief least) {
  struct pm_cursor caller = *cursor;
  uintptr_t fp = cursor->registers.fp;
  stand_in_caller(&caller, pc, slot + 8, fp);
  bool held = record_fits(&caller, fp) && caller_holds(&caller, least);
  for (uintptr_t at = base; !held && at < slot; at += 8) {
    uintptr_t word;
    if (!pm__step_read(cursor, at, &word) || !record_fits(&caller, word)) continue;
    caller.registers.fp = word;
    held = caller_holds(&caller, least);
  }
  if (!held) {
    caller.registers.fp = fp;
    held = caller_holds(&caller, least);
  }
  if (held) *cursor = caller;
  return held;
}

static bool scan_from(struct pm_cursor *cursor, uintptr_t base, unsigned words, enum belief least,
                      uintptr_t *cfa) {
  for (unsigned i = 0; i < words; i++) {
    uintptr_t slot = base + (uintptr_t)i * 8, pc;
    if (slot < base || !pm__step_read(cursor, slot, &pc)) return false;
    if (!returns_to_known(cursor, pc) || calls(cursor, pc, cursor->registers.pc) < least) continue;
    if (!try_return(cursor, base, slot, pc, least)) continue;
    *cfa = slot + 8;
    return true;
  }
  return false;
}

static bool scan(struct pm_cursor *cursor, uintptr_t *cfa) {
  uintptr_t bases[PM_CPU_BASES];
  unsigned count = pm__cpu_stack_bases(&cursor->registers, bases);
  for (unsigned i = 0; i < 2 * count; i++) {
    enum belief least = i < count ? LIKELY : UNLIKELY;
    if (scan_from(cursor, bases[i % count], SCAN_WORDS, least, cfa)) return true;
  }
  return false;
}

/*
 * In known text a missing rule means assembly, which seldom keeps a frame
 * pointer: rbp is still the caller's, and a step along it would lose the caller.
 * Elsewhere it means JIT code, which mostly keeps one; only right at the entry
 * of a function the return address is still on top.
 */
static bool guess_innermost(struct pm_cursor *cursor, uintptr_t *cfa) {
  if (pm__tables_span(cursor->tables, cursor->registers.pc))
    return scan(cursor, cfa) || frame_pointer_step(cursor, cfa);
  return scan_from(cursor, cursor->registers.sp, 1, LIKELY, cfa) ||
         frame_pointer_step(cursor, cfa) || scan(cursor, cfa);
}

/* A frame that cannot be code: not in an object, and not even mapped. */
static bool is_no_code(const struct pm_cursor *cursor) {
  uintptr_t pc = pm__step_lookup_pc(cursor);
  return pc < LOWEST_CODE || (!pm__tables_span(cursor->tables, pc) && !pm__probe_page(pc));
}

enum pm_step pm__step_guess(struct pm_cursor *cursor, uintptr_t *cfa) {
  if (cursor->interrupted) return guess_innermost(cursor, cfa) ? PM_STEP_CALLER : PM_STEP_NO_RULE;
  if (is_no_code(cursor)) return PM_STEP_LOST;
  if (!cursor->registers.fp) return PM_STEP_ROOT; /* the ABI's mark of the outermost frame */
  return frame_pointer_step(cursor, cfa) ? PM_STEP_CALLER : PM_STEP_NO_RULE;
}
