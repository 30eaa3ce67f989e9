/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/expression.h"

#include "unwind/machine.h"

enum {
  OP_DEREF = 0x06,
  OP_AND = 0x1a,
  OP_PLUS = 0x22,
  OP_PLUS_UCONST = 0x23,
  OP_SHL = 0x24,
  OP_GE = 0x2a,
  OP_LIT0 = 0x30,
  OP_LIT31 = 0x4f,
  OP_BREG0 = 0x70,
  OP_BREG31 = 0x8f,
};

static struct pm_place unknown(void) { return (struct pm_place){.kind = PM_PLACE_UNKNOWN}; }

static bool is_literal(uint8_t op) { return op >= OP_LIT0 && op <= OP_LIT31; }

static bool takes(struct pm_bytes *code, uint8_t op) {
  return pm__bytes_u8(code) == op && !code->bad;
}

/* bregN offset */
static bool take_register(struct pm_bytes *code, struct pm_place *place) {
  uint8_t op = pm__bytes_u8(code);
  int64_t offset = pm__bytes_sleb(code);
  if (code->bad || op < OP_BREG0 || op > OP_BREG31) return false;
  *place = (struct pm_place){.kind = PM_PLACE_REGISTER, .number = (uint8_t)(op - OP_BREG0)};
  place->offset = (int32_t)offset;
  return place->offset == offset;
}

/* plus_uconst n, or litN plus */
static bool take_addition(struct pm_bytes *code, int32_t *addend) {
  uint8_t op = pm__bytes_u8(code);
  uint64_t value = op == OP_PLUS_UCONST ? pm__bytes_uleb(code) : (uint64_t)op - OP_LIT0;
  if (op != OP_PLUS_UCONST && !(is_literal(op) && takes(code, OP_PLUS))) return false;
  *addend = (int32_t)value;
  return !code->bad && value <= INT32_MAX;
}

/*
 * What GNU ld and lld write for .plt: rsp + 8, and 8 more when (rip & 15) >= n,
 * as each 16-byte slot pushes its number with an instruction that ends at byte n.
 */
static bool take_plt(struct pm_bytes code, struct pm_place *place) {
  struct pm_place pc;
  if (!take_register(&code, &pc) || pc.number != PM_DWARF_RA || pc.offset) return false;
  if (!takes(&code, OP_LIT0 + 15) || !takes(&code, OP_AND)) return false;
  uint8_t limit = pm__bytes_u8(&code);
  if (!is_literal(limit) || !takes(&code, OP_GE) || !takes(&code, OP_LIT0 + 3) ||
      !takes(&code, OP_SHL) || !takes(&code, OP_PLUS) || pm__bytes_left(&code))
    return false;
  place->kind = PM_PLACE_PLT;
  place->extra = limit - OP_LIT0;
  return true;
}

struct pm_place pm__expression_value(struct pm_bytes code) {
  struct pm_place place;
  if (!take_register(&code, &place)) return unknown();
  if (!pm__bytes_left(&code) || take_plt(code, &place)) return place;
  if (!takes(&code, OP_DEREF)) return unknown();
  place.kind = PM_PLACE_AT_REGISTER;
  if (!pm__bytes_left(&code)) return place;
  if (!take_addition(&code, &place.extra) || pm__bytes_left(&code)) return unknown();
  return place;
}

struct pm_place pm__expression_location(struct pm_bytes code) {
  struct pm_place place;
  if (!take_register(&code, &place) || pm__bytes_left(&code)) return unknown();
  place.kind = PM_PLACE_AT_REGISTER;
  return place;
}
