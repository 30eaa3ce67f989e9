/* SPDX-License-Identifier: Apache-2.0 */
/* Executes call frame instructions; of the registers only those that a walk needs. */
#include "unwind/cfi.h"

#include "unwind/expression.h"
#include "unwind/machine.h"
#include "unwind/pointer.h"

enum {
  CFA_ADVANCE_LOC = 0x40, /* these three carry an operand in their low six bits */
  CFA_OFFSET = 0x80,
  CFA_RESTORE = 0xc0,
  CFA_NOP = 0x00,
  CFA_SET_LOC = 0x01,
  CFA_ADVANCE_LOC1 = 0x02,
  CFA_ADVANCE_LOC2 = 0x03,
  CFA_ADVANCE_LOC4 = 0x04,
  CFA_OFFSET_EXTENDED = 0x05,
  CFA_RESTORE_EXTENDED = 0x06,
  CFA_UNDEFINED = 0x07,
  CFA_SAME_VALUE = 0x08,
  CFA_REGISTER = 0x09,
  CFA_REMEMBER_STATE = 0x0a,
  CFA_RESTORE_STATE = 0x0b,
  CFA_DEF_CFA = 0x0c,
  CFA_DEF_CFA_REGISTER = 0x0d,
  CFA_DEF_CFA_OFFSET = 0x0e,
  CFA_DEF_CFA_EXPRESSION = 0x0f,
  CFA_EXPRESSION = 0x10,
  CFA_OFFSET_EXTENDED_SF = 0x11,
  CFA_DEF_CFA_SF = 0x12,
  CFA_DEF_CFA_OFFSET_SF = 0x13,
  CFA_VAL_OFFSET = 0x14,
  CFA_VAL_OFFSET_SF = 0x15,
  CFA_VAL_EXPRESSION = 0x16,
  CFA_GNU_ARGS_SIZE = 0x2e,
  CFA_GNU_NEGATIVE_OFFSET = 0x2f,
  REMEMBERED_MAX = 16,
};

struct program {
  const struct pm_section *section;
  const struct pm_cie *cie;
  struct pm_bytes code;
  struct pm_builder *builder; /* NULL: a CIE's instructions, which have no rows */
  uintptr_t location, end;
  struct pm_frame_state state;
  struct pm_frame_state remembered[REMEMBERED_MAX];
  unsigned depth;
  bool failed;
};

/* The place of a register that is tracked; any other's goes to `ignored`. */
static struct pm_place *place_of(struct pm_frame_state *state, uint64_t number,
                                 struct pm_place *ignored) {
  switch (number) {
  case PM_DWARF_RA: return &state->ra;
  case PM_DWARF_FP: return &state->fp;
  case PM_DWARF_AUX: return &state->aux;
  case PM_DWARF_SP: return &state->sp;
  default: return ignored;
  }
}

static struct pm_place place(enum pm_place_kind kind, uint64_t number, int64_t offset) {
  if (offset != (int32_t)offset || number > UINT8_MAX) kind = PM_PLACE_UNKNOWN;
  return (struct pm_place){
      .kind = (uint8_t)kind, .number = (uint8_t)number, .offset = (int32_t)offset};
}

static void set_register(struct program *p, uint64_t number, struct pm_place to) {
  struct pm_place ignored = to;
  *place_of(&p->state, number, &ignored) = to;
}

/* Factored offsets; the product may wrap for hostile input, which only makes a wrong place. */
static int64_t factored(const struct program *p, uint64_t offset) {
  return (int64_t)(offset * (uint64_t)p->cie->data_align);
}

static void set_offset(struct program *p, enum pm_place_kind kind, uint64_t number,
                       uint64_t offset) {
  set_register(p, number, place(kind, 0, factored(p, offset)));
}

static void set_to_initial(struct program *p, uint64_t number) {
  struct pm_place ignored = {0};
  struct pm_frame_state initial = p->cie->initial;
  set_register(p, number, *place_of(&initial, number, &ignored));
}

static void emit(struct program *p) {
  if (p->builder) pm__builder_row(p->builder, p->location, &p->state, p->cie->signal);
}

static void advance_to(struct program *p, uintptr_t location) {
  if (!p->builder || location < p->location) p->failed = true;
  if (p->failed || location == p->location) return;
  emit(p);
  p->location = location < p->end ? location : p->end;
}

static void advance(struct program *p, uint64_t delta) {
  uint64_t bytes = delta * p->cie->code_align;
  advance_to(p, p->location + (uintptr_t)bytes);
}

static struct pm_bytes take_block(struct program *p) {
  return pm__bytes_part(&p->code, pm__bytes_uleb(&p->code));
}

static void remember(struct program *p) {
  if (p->depth == REMEMBERED_MAX) p->failed = true;
  else p->remembered[p->depth++] = p->state;
}

static void recall(struct program *p) {
  if (!p->depth) p->failed = true;
  else p->state = p->remembered[--p->depth];
}

static void define_cfa(struct program *p, uint64_t number, int64_t offset) {
  p->state.cfa = place(PM_PLACE_REGISTER, number, offset);
}

/* Instructions that set the CFA. False: it is none of those. */
static bool execute_cfa(struct program *p, uint8_t op) {
  struct pm_bytes *code = &p->code;
  uint64_t number;
  switch (op) {
  case CFA_DEF_CFA:
    number = pm__bytes_uleb(code);
    define_cfa(p, number, (int64_t)pm__bytes_uleb(code));
    return true;
  case CFA_DEF_CFA_SF:
    number = pm__bytes_uleb(code);
    define_cfa(p, number, factored(p, (uint64_t)pm__bytes_sleb(code)));
    return true;
  case CFA_DEF_CFA_REGISTER: define_cfa(p, pm__bytes_uleb(code), p->state.cfa.offset); return true;
  case CFA_DEF_CFA_OFFSET:
    define_cfa(p, p->state.cfa.number, (int64_t)pm__bytes_uleb(code));
    return true;
  case CFA_DEF_CFA_OFFSET_SF:
    define_cfa(p, p->state.cfa.number, factored(p, (uint64_t)pm__bytes_sleb(code)));
    return true;
  case CFA_DEF_CFA_EXPRESSION: p->state.cfa = pm__expression_value(take_block(p)); return true;
  default: return false;
  }
}

/* Instructions that say where a register is. False: it is none of those. */
static bool execute_register(struct program *p, uint8_t op) {
  struct pm_bytes *code = &p->code;
  if ((op < CFA_OFFSET_EXTENDED || op > CFA_REGISTER) && op != CFA_EXPRESSION &&
      op != CFA_OFFSET_EXTENDED_SF && op != CFA_GNU_NEGATIVE_OFFSET &&
      (op < CFA_VAL_OFFSET || op > CFA_VAL_EXPRESSION))
    return false;
  uint64_t number = pm__bytes_uleb(code);
  switch (op) {
  case CFA_OFFSET_EXTENDED: set_offset(p, PM_PLACE_AT_CFA, number, pm__bytes_uleb(code)); break;
  case CFA_OFFSET_EXTENDED_SF:
    set_offset(p, PM_PLACE_AT_CFA, number, (uint64_t)pm__bytes_sleb(code));
    break;
  case CFA_GNU_NEGATIVE_OFFSET:
    set_offset(p, PM_PLACE_AT_CFA, number, 0 - pm__bytes_uleb(code));
    break;
  case CFA_VAL_OFFSET: set_offset(p, PM_PLACE_CFA, number, pm__bytes_uleb(code)); break;
  case CFA_VAL_OFFSET_SF:
    set_offset(p, PM_PLACE_CFA, number, (uint64_t)pm__bytes_sleb(code));
    break;
  case CFA_RESTORE_EXTENDED: set_to_initial(p, number); break;
  case CFA_UNDEFINED: set_register(p, number, place(PM_PLACE_UNDEFINED, 0, 0)); break;
  case CFA_SAME_VALUE: set_register(p, number, place(PM_PLACE_SAME, 0, 0)); break;
  case CFA_REGISTER:
    set_register(p, number, place(PM_PLACE_REGISTER, pm__bytes_uleb(code), 0));
    break;
  case CFA_EXPRESSION: set_register(p, number, pm__expression_location(take_block(p))); break;
  default: set_register(p, number, pm__expression_value(take_block(p))); break;
  }
  return true;
}

/* Instructions that move on in the text, and the rest. */
static void execute_other(struct program *p, uint8_t op) {
  struct pm_bytes *code = &p->code;
  switch (op) {
  case CFA_NOP: break;
  case CFA_SET_LOC: advance_to(p, pm__pointer_read(p->section, code, p->cie->encoding, 0)); break;
  case CFA_ADVANCE_LOC1: advance(p, pm__bytes_u8(code)); break;
  case CFA_ADVANCE_LOC2: advance(p, pm__bytes_u16(code)); break;
  case CFA_ADVANCE_LOC4: advance(p, pm__bytes_u32(code)); break;
  case CFA_REMEMBER_STATE: remember(p); break;
  case CFA_RESTORE_STATE: recall(p); break;
  case CFA_GNU_ARGS_SIZE: (void)pm__bytes_uleb(code); break;
  default: p->failed = true; break; /* an operand of unknown length: nothing can follow */
  }
}

static void execute_one(struct program *p) {
  uint8_t op = pm__bytes_u8(&p->code), low = op & 0x3f;
  switch (op & 0xc0) {
  case CFA_ADVANCE_LOC: advance(p, low); return;
  case CFA_OFFSET: set_offset(p, PM_PLACE_AT_CFA, low, pm__bytes_uleb(&p->code)); return;
  case CFA_RESTORE: set_to_initial(p, low); return;
  default: break;
  }
  if (!execute_cfa(p, op) && !execute_register(p, op)) execute_other(p, op);
}

static bool run(struct program *p) {
  while (!p->failed && pm__bytes_left(&p->code) && p->location <= p->end) {
    execute_one(p);
    if (p->code.bad) p->failed = true;
  }
  return !p->failed;
}

bool pm__cfi_initial(const struct pm_section *section, struct pm_cie *cie,
                     struct pm_bytes instructions) {
  struct program p = {.section = section, .cie = cie, .code = instructions};
  p.state.cfa.kind = PM_PLACE_UNKNOWN;
  bool done = run(&p);
  cie->initial = p.state;
  return done;
}

bool pm__cfi_execute(const struct pm_section *section, const struct pm_cie *cie,
                     const struct pm_fde *fde, struct pm_builder *builder) {
  struct program p = {.section = section,
                      .cie = cie,
                      .code = fde->instructions,
                      .builder = builder,
                      .location = fde->start,
                      .end = fde->end,
                      .state = cie->initial};
  bool done = run(&p);
  if (p.location < p.end) {
    if (done) emit(&p);
    else pm__builder_gap(builder, p.location);
  }
  pm__builder_gap(builder, p.end);
  return done;
}
