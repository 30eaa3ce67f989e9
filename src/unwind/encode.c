/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/encode.h"

#include "unwind/machine.h"

enum { CFA_WORDS_MAX = (1 << 12) - 1, RA_BELOW_CFA = 8 };

static struct pm_rule plain(enum pm_rule_kind kind) {
  return (struct pm_rule){(uint16_t)kind, 0, 0};
}

static enum pm_rule_kind base_kind(const struct pm_place *cfa) {
  if (cfa->kind != PM_PLACE_REGISTER) return PM_RULE_ODD;
  switch (cfa->number) {
  case PM_DWARF_SP: return PM_RULE_SP;
  case PM_DWARF_FP: return PM_RULE_FP;
  case PM_DWARF_AUX: return PM_RULE_AUX;
  default: return PM_RULE_ODD;
  }
}

/* A saved register as words from the CFA: 0 for "not changed". False when it does not fit. */
static bool pack_register(const struct pm_place *place, int8_t *words) {
  *words = 0;
  /* An undefined or unknown fp is seldom needed further up: keep the row. */
  if (place->kind == PM_PLACE_SAME || place->kind == PM_PLACE_UNDEFINED ||
      place->kind == PM_PLACE_UNKNOWN)
    return true;
  int32_t count = place->offset / 8;
  if (place->kind != PM_PLACE_AT_CFA || place->offset % 8 || !count || count < INT8_MIN ||
      count > INT8_MAX)
    return false;
  *words = (int8_t)count;
  return true;
}

static bool compact(const struct pm_frame_state *state, struct pm_rule *rule) {
  enum pm_rule_kind kind = base_kind(&state->cfa);
  int32_t offset = state->cfa.offset;
  if (kind == PM_RULE_ODD || offset < 0 || offset % 8 || offset / 8 > CFA_WORDS_MAX) return false;
  if (state->ra.kind != PM_PLACE_AT_CFA || state->ra.offset != -RA_BELOW_CFA) return false;
  rule->head = (uint16_t)((unsigned)kind | (unsigned)(offset / 8) << 4);
  return pack_register(&state->fp, &rule->fp) && pack_register(&state->aux, &rule->aux);
}

/* Words below the stack pointer are never read, so a rule that wants one is none. */
static bool reads_red_zone(const struct pm_place *place) {
  return place->kind == PM_PLACE_AT_REGISTER && place->number == PM_DWARF_SP && place->offset < 0;
}

/* The stack pointer is the CFA, or (signal frames) the very expression that gives the CFA. */
static bool sp_is_cfa(const struct pm_frame_state *state, bool signal) {
  return state->sp.kind == PM_PLACE_SAME || signal ||
         (state->sp.kind == PM_PLACE_CFA && !state->sp.offset);
}

struct pm_rule pm__encode_rule(const struct pm_frame_state *state, bool signal) {
  struct pm_rule rule = plain(PM_RULE_NONE);
  if (state->ra.kind == PM_PLACE_UNDEFINED) return plain(PM_RULE_ROOT);
  if (state->cfa.kind == PM_PLACE_UNKNOWN || state->ra.kind == PM_PLACE_UNKNOWN ||
      state->ra.kind == PM_PLACE_SAME || reads_red_zone(&state->cfa) || !sp_is_cfa(state, signal))
    return plain(PM_RULE_NONE);
  if (!signal && compact(state, &rule)) return rule;
  return plain(PM_RULE_ODD);
}

struct pm_rule pm__encode_odd(uint32_t index) {
  return (struct pm_rule){
      .head = (uint16_t)(PM_RULE_ODD | (index & 0xfff) << 4),
      .fp = (int8_t)(uint8_t)(index >> 12),
      .aux = (int8_t)(uint8_t)(index >> 20),
  };
}
