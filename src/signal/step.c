/* SPDX-License-Identifier: Apache-2.0 */
/* The common step: pc cache, four-byte rule, three reads of the stack. */
#include "signal/step.h"

void pm__step_begin(struct pm_cursor *cursor, const struct pm_tables *tables,
                    struct pm_pc_cache *cache, struct pm_registers registers,
                    struct pm_stack stack) {
  cursor->tables = tables;
  cursor->cache = cache;
  cursor->registers = registers;
  cursor->hi = stack.hi;
  cursor->probe = stack.probe;
  cursor->interrupted = true;
  cursor->guessed = false;
  cursor->pages.lo = cursor->pages.hi = 0;
}

/* Every caller's frame lies above this one's stack pointer, so that is the lower bound. */
__attribute__((no_sanitize("address"))) bool pm__step_read(struct pm_cursor *cursor,
                                                           uintptr_t address, uintptr_t *value) {
  if (address < cursor->registers.sp) return false;
  if (cursor->hi < sizeof *value || address > cursor->hi - sizeof *value) return false;
  if (PM_UNLIKELY(address & 7)) return false;
  if (cursor->probe && !pm__probe_range(&cursor->pages, address, sizeof *value)) return false;
  *value = *(const uintptr_t *)address;
  return true;
}

static struct pm_rule search(const struct pm_tables *tables, uintptr_t pc) {
  static const struct pm_rule none = {PM_RULE_NONE, 0, 0};
  const struct pm_span *span = pm__tables_span(tables, pc);
  return span ? pm__table_rule(span, pc) : none;
}

/* Fibonacci hashing: return addresses share their low and high bits. */
static struct pm_pc_cache_entry *entry_of(struct pm_pc_cache *cache, uintptr_t pc) {
  uint64_t hash = (uint64_t)pc * 0x9e3779b97f4a7c15u;
  return &cache->entry[hash >> (64 - PM_PC_CACHE_BITS)];
}

struct pm_rule pm__step_rule(struct pm_cursor *cursor) {
  uintptr_t pc = pm__step_lookup_pc(cursor);
  if (!cursor->cache || !cursor->tables) return search(cursor->tables, pc);
  struct pm_pc_cache_entry *entry = entry_of(cursor->cache, pc);
  uint32_t generation = cursor->tables->generation;
  if (PM_LIKELY(entry->pc == pc && entry->generation == generation)) return entry->rule;
  struct pm_rule rule = search(cursor->tables, pc);
  if (pm__rule_kind(rule) != PM_RULE_NONE) {
    entry->pc = pc;
    entry->generation = generation;
    entry->rule = rule;
  }
  return rule;
}

static uintptr_t base_of(const struct pm_registers *registers, unsigned kind) {
  if (kind == PM_RULE_SP) return registers->sp;
  return kind == PM_RULE_FP ? registers->fp : registers->aux;
}

/*
 * A saved register, or the one there is when the rule does not name a place. A
 * place below sp has been popped: compilers leave the rule standing in an
 * epilogue, and the register holds the caller's value again.
 */
static bool restore(struct pm_cursor *cursor, uintptr_t cfa, int8_t words, uintptr_t *value) {
  uintptr_t place = cfa + (uintptr_t)(intptr_t)words * 8;
  return !words || place < cursor->registers.sp || pm__step_read(cursor, place, value);
}

enum pm_step pm__step_execute(struct pm_cursor *cursor, struct pm_rule rule, uintptr_t *cfa) {
  unsigned kind = pm__rule_kind(rule);
  if (PM_UNLIKELY(kind == PM_RULE_ODD)) return pm__step_odd(cursor, rule, cfa);
  struct pm_registers *registers = &cursor->registers;
  uintptr_t frame = base_of(registers, kind) + pm__rule_offset(rule);
  uintptr_t pc, fp = registers->fp, aux = registers->aux;
  /* The return address lies at or above sp, so the CFA grows with every frame. */
  if (!pm__step_read(cursor, frame - 8, &pc)) return PM_STEP_BAD;
  if (!restore(cursor, frame, rule.fp, &fp)) return PM_STEP_BAD;
  if (!restore(cursor, frame, rule.aux, &aux)) return PM_STEP_BAD;
  registers->pc = pc;
  registers->sp = *cfa = frame;
  registers->fp = fp;
  registers->aux = aux;
  registers->interrupted = NULL;
  cursor->interrupted = false;
  return PM_STEP_CALLER;
}

enum pm_step pm__step_next(struct pm_cursor *cursor, uintptr_t *cfa) {
  *cfa = 0;
  struct pm_rule rule = pm__step_rule(cursor);
  unsigned kind = pm__rule_kind(rule);
  if (PM_UNLIKELY(kind == PM_RULE_ROOT)) return PM_STEP_ROOT;
  cursor->guessed = kind == PM_RULE_NONE;
  enum pm_step step = PM_UNLIKELY(cursor->guessed) ? pm__step_guess(cursor, cfa)
                                                   : pm__step_execute(cursor, rule, cfa);
  /* Interrupted at 0: a call through a null pointer, which has a caller. */
  if (step == PM_STEP_CALLER && !cursor->registers.pc && !cursor->interrupted) return PM_STEP_ROOT;
  return step;
}
