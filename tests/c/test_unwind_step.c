/* SPDX-License-Identifier: Apache-2.0 */
/* The walk as a pure function: made-up tables, made-up stacks, broken ones too. */
#include <stdint.h>

#include "check.h"
#include "unwind/encode.h"
#include "unwind_tables.h"

enum {
  AT_SP8 = 0x10100,
  AT_SP32 = 0x10200,
  AT_FP16 = 0x10300,
  AT_AUX24 = 0x10400,
  AT_ROOT = 0x10500,
  AT_DEREF = 0x10600,
  AT_SAVES = 0x10700,
  AT_BIG = 0x10800,
  AT_PLT = 0x10900,
  AT_SIGNAL = 0x10a00,
  AT_GAP = 0x10b00
};

static struct pm_compiled *compiled;
static struct pm_tables *tables;

static void add(struct pm_builder *builder, uintptr_t pc, struct pm_frame_state state,
                bool signal) {
  pm__builder_function(builder, pc, pc + 0x100);
  pm__builder_row(builder, pc, &state, signal);
}

static void add_rows(struct pm_builder *builder) {
  struct pm_frame_state state = state_of(PM_DWARF_SP, 8);
  add(builder, AT_SP8, state, false);
  add(builder, AT_SP32, state_of(PM_DWARF_SP, 32), false);
  state = state_of(PM_DWARF_FP, 16);
  state.fp = place_of(PM_PLACE_AT_CFA, 0, -16);
  add(builder, AT_FP16, state, false);
  add(builder, AT_AUX24, state_of(PM_DWARF_AUX, 24), false);
  state = state_of(PM_DWARF_SP, 8);
  state.ra = place_of(PM_PLACE_UNDEFINED, 0, 0);
  add(builder, AT_ROOT, state, false);
  state = state_of(PM_DWARF_SP, 0);
  state.cfa = (struct pm_place){
      .kind = PM_PLACE_AT_REGISTER, .number = PM_DWARF_SP, .offset = 16, .extra = 8};
  add(builder, AT_DEREF, state, false);
  state = state_of(PM_DWARF_SP, 48);
  state.fp = place_of(PM_PLACE_AT_CFA, 0, -16);
  state.aux = place_of(PM_PLACE_AT_CFA, 0, -24);
  add(builder, AT_SAVES, state, false);
  add(builder, AT_BIG, state_of(PM_DWARF_SP, 40000), false);
  state = state_of(PM_DWARF_SP, 8);
  state.cfa =
      (struct pm_place){.kind = PM_PLACE_PLT, .number = PM_DWARF_SP, .offset = 8, .extra = 11};
  add(builder, AT_PLT, state, false);
  state = state_of(PM_DWARF_SP, 0);
  state.cfa = (struct pm_place){.kind = PM_PLACE_AT_REGISTER, .number = PM_DWARF_SP, .offset = 160};
  state.ra = place_of(PM_PLACE_AT_REGISTER, PM_DWARF_SP, 168);
  state.fp = place_of(PM_PLACE_AT_REGISTER, PM_DWARF_SP, 120);
  add(builder, AT_SIGNAL, state, true);
  pm__builder_gap(builder, AT_GAP);
}

static void setup(void) {
  struct pm_builder builder;
  pm__builder_begin(&builder, TEXT_LO, TEXT_HI);
  add_rows(&builder);
  compiled = pm__builder_finish(&builder);
  if (!compiled) abort();
  tables = tables_of(compiled, TEXT_LO, TEXT_HI);
}

static uint64_t stack[8192];

static uintptr_t at(unsigned index) { return (uintptr_t)&stack[index]; }

static struct walked walked;

static void walk_with(struct pm_pc_cache *cache, struct pm_registers registers) {
  struct pm_stack bounds = {.hi = (uintptr_t)(stack + PM_COUNT_OF(stack)), .probe = false};
  pm__walk_native(tables, cache, registers, bounds, walk_into(&walked, PM_NATIVE_FRAMES));
}

static void walk_from(uintptr_t pc, unsigned sp) {
  walk_with(NULL, (struct pm_registers){.pc = pc, .sp = at(sp)});
}

static void test_rules(void) {
  CHECK_EQ_INT(sizeof(struct pm_rule), 4);
  CHECK_EQ_INT(sizeof(struct pm_row), 8);
  CHECK_EQ_INT(compiled->rejected, 0);
  struct pm_rule found = pm__table_rule(&tables->span[0], AT_SP32);
  CHECK_EQ_INT(pm__rule_kind(found), PM_RULE_SP);
  CHECK_EQ_INT(pm__rule_offset(found), 32);
  CHECK_EQ_INT(pm__rule_kind(pm__table_rule(&tables->span[0], AT_SP32 - 1)), PM_RULE_SP);
  CHECK_EQ_INT(pm__rule_kind(pm__table_rule(&tables->span[0], AT_BIG)), PM_RULE_ODD);
  CHECK_EQ_INT(pm__rule_kind(pm__table_rule(&tables->span[0], TEXT_LO)), PM_RULE_NONE);
  CHECK_EQ_INT(pm__rule_kind(pm__table_rule(&tables->span[0], AT_GAP)), PM_RULE_NONE);
  CHECK_EQ_INT(pm__rule_kind(pm__table_rule(&tables->span[0], TEXT_HI - 1)), PM_RULE_NONE);
  for (uint32_t index = 0; index < PM_ODD_MAX; index += 4093)
    CHECK_EQ_INT(pm__rule_odd(pm__encode_odd(index)), index);
}

/* Three ordinary frames and the root. */
static void test_chain(void) {
  memset(stack, 0, sizeof stack);
  stack[100] = AT_SP32 + 5;
  stack[104] = AT_FP16 + 5;
  stack[110] = 0x7777;
  stack[111] = AT_ROOT + 5;
  walk_with(NULL, (struct pm_registers){.pc = AT_SP8, .sp = at(100), .fp = at(110)});
  CHECK_EQ_INT(walked.walk.count, 4);
  CHECK_EQ_INT(walked.walk.flags, PM_WALK_ROOT);
  CHECK_EQ_INT(walked.pc[1], AT_SP32 + 5);
  CHECK_EQ_INT(walked.pc[3], AT_ROOT + 5);
  CHECK_EQ_INT(walked.cfa[0], at(101));
  CHECK_EQ_INT(walked.cfa[1], at(105));
  CHECK_EQ_INT(walked.cfa[2], at(112));
  CHECK_EQ_INT(walked.cfa[3], 0);
}

/* A return address is looked up inside its call, the interrupted pc where it is. */
static void test_lookup_pc(void) {
  memset(stack, 0, sizeof stack);
  stack[100] = AT_FP16; /* the last instruction of the function at AT_SP32 was the call */
  stack[104] = AT_ROOT + 1;
  walk_from(AT_SP8, 100);
  CHECK_EQ_INT(walked.walk.count, 3);
  CHECK_EQ_INT(walked.walk.flags, PM_WALK_ROOT);
  stack[100] = AT_SP8; /* AT_SP8 - 1 has no rule and no frame pointer */
  walk_from(AT_SP8, 100);
  CHECK_EQ_INT(walked.walk.count, 2);
}

static void test_registers(void) {
  memset(stack, 0, sizeof stack);
  stack[103] = at(120); /* aux */
  stack[104] = at(110); /* fp */
  stack[105] = AT_FP16 + 1;
  stack[110] = 1;
  stack[111] = AT_AUX24 + 1;
  stack[122] = AT_ROOT + 1;
  walk_from(AT_SAVES, 100);
  CHECK_EQ_INT(walked.walk.count, 4);
  CHECK_EQ_INT(walked.walk.flags, PM_WALK_ROOT);
  CHECK_EQ_INT(walked.cfa[2], at(123));
}

static void test_odd(void) {
  memset(stack, 0, sizeof stack);
  stack[102] = at(200);
  stack[200] = AT_BIG + 1;
  stack[5200] = AT_PLT + 13; /* looked up at byte 12: behind the push */
  stack[5202] = AT_ROOT + 1;
  walk_from(AT_DEREF, 100);
  CHECK_EQ_INT(walked.walk.count, 4);
  CHECK_EQ_INT(walked.cfa[0], at(201));
  CHECK_EQ_INT(walked.cfa[1], at(5201));
  CHECK_EQ_INT(walked.cfa[2], at(5203));
  stack[100] = AT_ROOT + 1;
  walk_from(AT_PLT + 10, 100);
  CHECK_EQ_INT(walked.cfa[0], at(101));
}

/* The interrupted frame of a signal has its exact pc and its own stack pointer. */
static void test_signal_frame(void) {
  memset(stack, 0, sizeof stack);
  stack[100] = AT_SIGNAL + 1;
  stack[101 + 120 / 8] = at(600); /* rbp */
  stack[101 + 160 / 8] = at(500); /* rsp */
  stack[101 + 168 / 8] = AT_FP16; /* rip: the function's first byte */
  stack[601] = AT_ROOT + 1;
  walk_from(AT_SP8, 100);
  CHECK_EQ_INT(walked.walk.count, 4);
  CHECK_EQ_INT(walked.walk.flags, PM_WALK_ROOT);
  CHECK_EQ_INT(walked.cfa[1], at(500));
  CHECK_EQ_INT(walked.cfa[2], at(602));
}

static void test_return_address_zero(void) {
  memset(stack, 0, sizeof stack);
  walk_from(AT_SP8, 100);
  CHECK_EQ_INT(walked.walk.count, 1);
  CHECK_EQ_INT(walked.walk.flags, PM_WALK_ROOT);
  CHECK_EQ_INT(walked.cfa[0], at(101));
}

static void fill_chain(unsigned frames) {
  memset(stack, 0, sizeof stack);
  for (unsigned i = 0; i < frames - 2; i++) stack[i] = AT_SP8 + 1 + i % 200;
  stack[frames - 2] = AT_ROOT + 1;
}

/* The middle is cut, in every position that the ring of the second half may have. */
static void test_middle_cut(void) {
  for (unsigned frames = 5; frames < 40; frames++) {
    struct pm_stack bounds = {.hi = (uintptr_t)(stack + PM_COUNT_OF(stack))};
    struct pm_registers registers = {.pc = AT_SP8, .sp = at(0)};
    fill_chain(frames);
    struct pm_walk *walk = walk_into(&walked, 8);
    pm__walk_native(tables, NULL, registers, bounds, walk);
    CHECK_EQ_INT(walk->count, frames > 8 ? 8 : frames);
    CHECK_EQ_INT(walk->skipped, frames > 8 ? frames - 8 : 0);
    CHECK_EQ_INT(walk->split, frames > 8 ? 4 : frames);
    for (unsigned i = 1; i < walk->count; i++) {
      unsigned frame = i < walk->split ? i : i + walk->skipped;
      CHECK_EQ_INT(walk->pc[i], stack[frame - 1]);
      CHECK_EQ_INT(walk->cfa[i], frame + 1 < frames ? at(frame + 1) : 0);
    }
  }
}

static void test_limit(void) {
  size_t words = PM_WALK_STEPS_MAX + 500;
  uint64_t *deep = malloc(words * sizeof *deep);
  for (size_t i = 0; i < words; i++) deep[i] = AT_SP8 + 1;
  struct pm_stack bounds = {.hi = (uintptr_t)(deep + words)};
  struct pm_registers registers = {.pc = AT_SP8, .sp = (uintptr_t)deep};
  struct pm_walk *walk = walk_into(&walked, PM_NATIVE_FRAMES);
  pm__walk_native(tables, NULL, registers, bounds, walk);
  CHECK_EQ_INT(walk->flags, PM_WALK_LIMIT);
  CHECK_EQ_INT(walk->count + walk->skipped, PM_WALK_STEPS_MAX);
  bounds.hi = (uintptr_t)(deep + 300); /* and a chain that runs into the stack's end */
  pm__walk_native(tables, NULL, registers, bounds, walk);
  CHECK_EQ_INT(walk->flags, PM_WALK_BAD_CFA);
  free(deep);
}

/* The cache answers as the tables do, and a new generation empties it. */
static void test_cache(void) {
  static struct pm_pc_cache cache;
  struct pm_registers registers = {.pc = AT_SP8, .sp = at(0)};
  fill_chain(120);
  walk_with(&cache, registers);
  walk_with(&cache, registers);
  CHECK_EQ_INT(walked.walk.count, 120);
  CHECK_EQ_INT(walked.walk.flags, PM_WALK_ROOT);
  tables->generation++;
  tables->span[0].table = NULL; /* what the cache says must not count any more */
  walk_with(&cache, registers);
  CHECK_EQ_INT(walked.walk.count, 1);
  CHECK_EQ_INT(walked.walk.flags, PM_WALK_NO_RULE);
  tables->span[0].table = &compiled->table;
  walk_with(&cache, registers); /* the same generation: a pc without a rule was not kept */
  CHECK_EQ_INT(walked.walk.count, 120);
}

static void test_no_tables(void) {
  struct pm_stack bounds = {.hi = (uintptr_t)(stack + PM_COUNT_OF(stack))};
  struct pm_walk *walk = walk_into(&walked, PM_NATIVE_FRAMES);
  pm__walk_native(NULL, NULL, (struct pm_registers){.pc = AT_SP8, .sp = at(0)}, bounds, walk);
  CHECK_EQ_INT(walk->count, 1);
  CHECK_EQ_INT(walk->flags, PM_WALK_NO_RULE);
}

/* Values near which bounds checks go wrong. */
static void test_borders(void) {
  static const uintptr_t odd_values[] = {
      0, 8, (uintptr_t)-8, (uintptr_t)-16, (uintptr_t)-24, 7, UINTPTR_MAX, (uintptr_t)1 << 63, 1};
  static const uintptr_t pcs[] = {AT_SP8,   AT_SP32, AT_FP16,    AT_AUX24,  AT_DEREF,
                                  AT_SAVES, AT_BIG,  AT_PLT,     AT_SIGNAL, AT_GAP,
                                  0,        1,       UINTPTR_MAX};
  unsigned ended = 0, tried = 0;
  for (unsigned p = 0; p < PM_COUNT_OF(pcs); p++)
    for (unsigned v = 0; v < PM_COUNT_OF(odd_values); v++)
      for (unsigned w = 0; w < 3; w++, tried++) {
        uintptr_t value = odd_values[v];
        uintptr_t top = at(PM_COUNT_OF(stack) - 1) + 8; /* a stack pointer at the very end */
        struct pm_registers registers = {
            .pc = pcs[p], .sp = w ? w == 1 ? value : top : at(9), .fp = value, .aux = value};
        struct pm_stack bounds = {.hi = top};
        if (registers.sp < at(0)) registers.sp = at(0); /* nothing below is the stack's */
        pm__walk_native(tables, NULL, registers, bounds, walk_into(&walked, 16));
        ended += walked.walk.flags != 0;
      }
  CHECK_EQ_INT(ended, tried);
}

static uint64_t random_state = 88172645463325252u;
static uint64_t random_number(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

/* A word that may be a frame pointer, a return address, or nothing of the kind. */
static uint64_t random_word(void) {
  uint64_t number = random_number();
  switch (number >> 60) {
  case 0: return number;
  case 1: return 0;
  case 2:
  case 3:
  case 4:
  case 5: return at((unsigned)(number % PM_COUNT_OF(stack)));
  case 6: return at(0) + number % sizeof stack;
  default: return TEXT_LO + number % 0xc00;
  }
}

/* A stack overwritten with anything: the walk ends, inside its bounds (ASan watches). */
static void test_random_stacks(void) {
  static struct pm_pc_cache cache;
  for (unsigned i = 0; i < 3000; i++) {
    for (unsigned j = 0; j < 400; j++) stack[(i * 37 + j) % PM_COUNT_OF(stack)] = random_word();
    struct pm_registers registers = {.pc = random_word(),
                                     .sp = at((i * 37) % PM_COUNT_OF(stack)),
                                     .fp = random_word(),
                                     .aux = random_word()};
    walk_with(i % 2 ? &cache : NULL, registers);
    if (!walked.walk.flags || walked.walk.count > PM_NATIVE_FRAMES) CHECK(!"an orderly end");
  }
  CHECK(true);
}

int main(void) {
  setup();
  test_rules();
  test_chain();
  test_lookup_pc();
  test_registers();
  test_odd();
  test_signal_frame();
  test_return_address_zero();
  test_middle_cut();
  test_limit();
  test_cache();
  test_no_tables();
  test_borders();
  test_random_stacks();
  free(tables);
  pm__compiled_free(compiled);
  return check_report();
}
