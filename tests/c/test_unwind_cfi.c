/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of real libraries against libdw's reading of the same CFI, and
 * .eh_frame bytes that were cut off or overwritten.
 */
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <unistd.h>

#include "check.h"
#include "unwind/ehframe.h"
#include "unwind_tables.h"

/* A register file and a memory made of numbers: equal rules give equal values. */
static uint64_t register_value(unsigned number) { return 0x1000003 * (number + 1) & ~7u; }
static uint64_t memory_at(uint64_t address) { return address * 0x9e3779b97f4a7c15u + 1; }

struct values {
  uint64_t cfa, ra, fp, aux;
  bool root;
};

/* ---- our side: the rule, executed on those numbers ---- */

static uint64_t place_value(const struct pm_place *place, uint64_t cfa, uint64_t same,
                            uint64_t pc) {
  uint64_t offset = (uint64_t)(int64_t)place->offset, base = register_value(place->number);
  switch ((enum pm_place_kind)place->kind) {
  case PM_PLACE_AT_CFA: return memory_at(cfa + offset);
  case PM_PLACE_CFA: return cfa + offset;
  case PM_PLACE_REGISTER: return base + offset;
  case PM_PLACE_AT_REGISTER: return memory_at(base + offset) + (uint64_t)(int64_t)place->extra;
  case PM_PLACE_PLT: return base + offset + ((pc & 15) >= (uint64_t)place->extra ? 8 : 0);
  case PM_PLACE_SAME:
  case PM_PLACE_UNDEFINED:
  case PM_PLACE_UNKNOWN: break;
  }
  return same;
}

static struct values odd_values(const struct pm_odd_rule *odd, uint64_t pc) {
  uint64_t cfa = place_value(&odd->cfa, 0, 0, pc);
  return (struct values){
      .cfa = cfa,
      .ra = place_value(&odd->ra, cfa, 0, pc),
      .fp = place_value(&odd->fp, cfa, register_value(PM_DWARF_FP), pc),
      .aux = place_value(&odd->aux, cfa, register_value(PM_DWARF_AUX), pc),
  };
}

static uint64_t saved(uint64_t cfa, int8_t words, unsigned number) {
  return words ? memory_at(cfa + (uint64_t)(int64_t)words * 8) : register_value(number);
}

/* False: no rule. */
static bool our_values(const struct pm_span *span, uintptr_t pc, struct values *out) {
  struct pm_rule rule = pm__table_rule(span, pc);
  unsigned kind = pm__rule_kind(rule);
  *out = (struct values){.root = kind == PM_RULE_ROOT};
  if (kind == PM_RULE_NONE || kind == PM_RULE_ROOT) return kind != PM_RULE_NONE;
  if (kind == PM_RULE_ODD) {
    *out = odd_values(&span->table->odd[pm__rule_odd(rule)], pc);
    return true;
  }
  unsigned base = kind == PM_RULE_SP   ? PM_DWARF_SP
                  : kind == PM_RULE_FP ? PM_DWARF_FP
                                       : PM_DWARF_AUX;
  out->cfa = register_value(base) + pm__rule_offset(rule);
  out->ra = memory_at(out->cfa - 8);
  out->fp = saved(out->cfa, rule.fp, PM_DWARF_FP);
  out->aux = saved(out->cfa, rule.aux, PM_DWARF_AUX);
  return true;
}

/* ---- libdw's side: DWARF operations on the same numbers ---- */

static uint64_t breg(unsigned number, uint64_t pc) {
  return number == PM_DWARF_RA ? pc : register_value(number);
}

/* One operation; false: not one that CFI of x86-64 is known to use. */
static bool operate(const Dwarf_Op *op, uint64_t *stack, size_t *depth, uint64_t cfa, uint64_t pc,
                    bool *is_value) {
  uint64_t *top = stack + *depth; /* one past */
  if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) stack[(*depth)++] = op->atom - DW_OP_lit0;
  else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
    stack[(*depth)++] = breg(op->atom - DW_OP_breg0, pc) + op->number;
  else if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
    stack[(*depth)++] = breg(op->atom - DW_OP_reg0, pc);
    *is_value = true;
  } else if (op->atom == DW_OP_regx) {
    stack[(*depth)++] = breg((unsigned)op->number, pc);
    *is_value = true;
  } else if (op->atom == DW_OP_bregx)
    stack[(*depth)++] = breg((unsigned)op->number, pc) + op->number2;
  else if (op->atom == DW_OP_call_frame_cfa) stack[(*depth)++] = cfa;
  else if (op->atom == DW_OP_stack_value) *is_value = true;
  else if (!*depth) return false;
  else if (op->atom == DW_OP_deref) top[-1] = memory_at(top[-1]);
  else if (op->atom == DW_OP_plus_uconst) top[-1] += op->number;
  else if (*depth < 2) return false;
  else {
    switch (op->atom) {
    case DW_OP_and: top[-2] &= top[-1]; break;
    case DW_OP_ge: top[-2] = (int64_t)top[-2] >= (int64_t)top[-1]; break;
    case DW_OP_shl: top[-2] <<= top[-1]; break;
    case DW_OP_plus: top[-2] += top[-1]; break;
    case DW_OP_mul: top[-2] *= top[-1]; break;
    default: return false;
    }
    --*depth;
  }
  return true;
}

static bool evaluate(const Dwarf_Op *ops, size_t count, uint64_t cfa, uint64_t pc, bool location,
                     uint64_t *value) {
  uint64_t stack[64];
  size_t depth = 0;
  bool is_value = false;
  for (size_t i = 0; i < count && depth < PM_COUNT_OF(stack) - 1; i++)
    if (!operate(&ops[i], stack, &depth, cfa, pc, &is_value)) return false;
  if (!depth) return false;
  *value = location && !is_value ? memory_at(stack[depth - 1]) : stack[depth - 1];
  return true;
}

/* A register of the caller; *undefined when there is none. False: an unknown form. */
static bool their_register(Dwarf_Frame *frame, int number, uint64_t cfa, uint64_t pc,
                           uint64_t *value, bool *undefined) {
  Dwarf_Op memory[3], *ops = memory;
  size_t count = 0;
  *undefined = false;
  if (dwarf_frame_register(frame, number, memory, &ops, &count)) return false;
  if (!count && ops == memory) *undefined = true;
  if (!count) return true; /* undefined, or the same value: *value stays */
  return evaluate(ops, count, cfa, pc, true, value);
}

static bool their_values(Dwarf_Frame *frame, uint64_t pc, struct values *out) {
  Dwarf_Op *ops;
  size_t count;
  bool undefined;
  *out = (struct values){.fp = register_value(PM_DWARF_FP), .aux = register_value(PM_DWARF_AUX)};
  if (dwarf_frame_cfa(frame, &ops, &count) || !evaluate(ops, count, 0, pc, false, &out->cfa))
    return false;
  if (!their_register(frame, PM_DWARF_RA, out->cfa, pc, &out->ra, &out->root)) return false;
  return their_register(frame, PM_DWARF_FP, out->cfa, pc, &out->fp, &undefined) &&
         their_register(frame, PM_DWARF_AUX, out->cfa, pc, &out->aux, &undefined);
}

/* ---- the comparison ---- */

struct library {
  const char *path;
  struct pm_image image;
  struct pm_compiled *compiled;
  struct pm_span span;
  int fd;
  Elf *elf;
  Dwarf_CFI *cfi;
  unsigned rows, differ, unknown, missing, ended;
};

static struct pm_image_list images;

/* The image that lies where the loader put `path`. */
static bool find_image(struct library *library) {
  struct link_map *map;
  void *handle = dlopen(library->path, RTLD_LAZY | RTLD_LOCAL);
  if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map)) return false;
  pm__image_list_free(&images);
  if (pm__image_scan(&images)) return false;
  for (uint32_t i = 0; i < images.count; i++) {
    if (images.image[i].bias != map->l_addr) continue;
    library->image = images.image[i];
    return true;
  }
  return false;
}

static bool open_library(struct library *library) {
  struct pm_eh_frame eh_frame;
  if (!find_image(library) || !pm__ehframe_copy(&library->image, &eh_frame)) return false;
  uintptr_t lo = library->image.text_lo, hi = library->image.text_hi;
  library->compiled = pm__ehframe_compile(&eh_frame, lo, hi);
  pm__ehframe_free(&eh_frame);
  library->span = (struct pm_span){.lo = lo, .hi = hi, .table = &library->compiled->table};
  library->fd = open(library->path, O_RDONLY | O_CLOEXEC);
  library->elf = elf_begin(library->fd, ELF_C_READ_MMAP, NULL);
  library->cfi = dwarf_getcfi_elf(library->elf);
  return library->cfi != NULL;
}

static void close_library(struct library *library) {
  dwarf_cfi_end(library->cfi);
  elf_end(library->elf);
  close(library->fd);
  pm__compiled_free(library->compiled);
}

static void compare_at(struct library *library, Dwarf_Frame *frame, uintptr_t pc) {
  struct values ours, theirs;
  library->rows++;
  bool known = their_values(frame, pc, &theirs), have = our_values(&library->span, pc, &ours);
  if (!known) library->unknown++;
  else if (!have) library->missing++;
  else if (ours.root || theirs.root) library->differ += ours.root != theirs.root;
  else if (ours.cfa != theirs.cfa || ours.ra != theirs.ra || ours.fp != theirs.fp ||
           ours.aux != theirs.aux)
    library->differ++;
}

/* Steps from row to row as libdw sees them, and looks at both ends of each. */
static void compare_function(struct library *library, struct pm_function function) {
  uintptr_t bias = library->image.bias, end = library->span.lo + function.end;
  for (uintptr_t pc = library->span.lo + function.start; pc < end;) {
    Dwarf_Frame *frame;
    Dwarf_Addr row_start, row_end;
    if (dwarf_cfi_addrframe(library->cfi, pc - bias, &frame)) {
      library->differ++;
      return;
    }
    dwarf_frame_info(frame, &row_start, &row_end, NULL);
    compare_at(library, frame, pc);
    uintptr_t next = row_end + bias;
    if (next > pc + 1 && next <= end) compare_at(library, frame, next - 1);
    free(frame);
    pc = next;
  }
}

/* Behind an FDE and before the next, neither side may know a rule. */
static void compare_gap(struct library *library, const struct pm_function *before, uint32_t next) {
  struct values values;
  Dwarf_Frame *frame;
  if (before->end >= next) return;
  uintptr_t pc = library->span.lo + before->end;
  library->ended++;
  if (our_values(&library->span, pc, &values)) library->differ++;
  if (!dwarf_cfi_addrframe(library->cfi, pc - library->image.bias, &frame)) {
    library->differ++;
    free(frame);
  }
}

/* `every`: only each so many-th function is compared, to keep large libraries short. */
static void test_library(const char *path, uint32_t every, unsigned allowed_missing) {
  struct library library = {.path = path};
  if (access(path, R_OK)) {
    printf("skipped, not here: %s\n", path);
    return;
  }
  CHECK(open_library(&library));
  if (!library.cfi) return;
  const struct pm_compiled *compiled = library.compiled;
  for (uint32_t i = 0; i < compiled->table.functions; i++) {
    const struct pm_function *function = &compiled->table.function[i];
    if (i % every == 0) compare_function(&library, *function);
    if (i + 1 < compiled->table.functions) compare_gap(&library, function, function[1].start);
  }
  CHECK_EQ_INT(compiled->rejected, 0);
  CHECK_EQ_INT(library.differ, 0);
  CHECK(library.missing <= allowed_missing);
  printf(
      "%s: %u rows kept, %u compared, %u gaps, %u differ, %u without our rule, %u not compared\n",
      path, compiled->table.rows, library.rows, library.ended, library.differ, library.missing,
      library.unknown);
  close_library(&library);
}

/* ---- hostile bytes ---- */

static uint64_t random_state = 0x2545f4914f6cdd1du;
static uint32_t random_below(uint32_t limit) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 32) % limit;
}

/* A copy exactly as long as said, so that ASan sees the first byte too far. */
static struct pm_section part_of(const struct pm_section *whole, size_t size) {
  struct pm_section part = {malloc(size ? size : 1), size, whole->address};
  memcpy(part.bytes, whole->bytes, size);
  return part;
}

/* Walks real stack memory by whatever the broken table says. */
static void walk_by(const struct pm_compiled *compiled, const struct pm_image *image) {
  static uint64_t stack[512];
  struct walked walked;
  struct pm_tables *tables = tables_of(compiled, image->text_lo, image->text_hi);
  for (unsigned i = 0; i < PM_COUNT_OF(stack); i++)
    stack[i] = i % 3 ? image->text_lo + random_below((uint32_t)(image->text_hi - image->text_lo))
                     : (uintptr_t)&stack[random_below(PM_COUNT_OF(stack))];
  struct pm_registers registers = {
      .pc = stack[1], .sp = (uintptr_t)stack, .fp = stack[0], .aux = stack[3]};
  struct pm_stack bounds = {.hi = (uintptr_t)(stack + PM_COUNT_OF(stack))};
  pm__walk_native(tables, NULL, registers, bounds, walk_into(&walked, PM_NATIVE_FRAMES));
  free(tables);
}

static void compile_part(const struct pm_eh_frame *part, const struct pm_image *image) {
  struct pm_compiled *compiled = pm__ehframe_compile(part, image->text_lo, image->text_hi);
  if (!compiled) {
    CHECK(!"memory");
    return;
  }
  uint32_t rows = compiled->table.rows;
  for (uint32_t i = 1; i < rows; i++)
    if (compiled->table.row[i - 1].pc >= compiled->table.row[i].pc) CHECK(!"sorted rows");
  walk_by(compiled, image);
  pm__compiled_free(compiled);
}

static void truncate_frames(const struct pm_eh_frame *whole, const struct pm_image *image,
                            bool keep_table) {
  for (unsigned i = 0; i < 60; i++) {
    size_t size = i < 30 ? i : random_below((uint32_t)whole->frames.size);
    size_t header = keep_table ? whole->header.size : random_below(12);
    struct pm_eh_frame part = {part_of(&whole->header, header), part_of(&whole->frames, size)};
    compile_part(&part, image);
    pm__ehframe_free(&part);
  }
}

static void overwrite(const struct pm_eh_frame *whole, const struct pm_image *image) {
  for (unsigned i = 0; i < 150; i++) {
    struct pm_eh_frame part = {part_of(&whole->header, whole->header.size),
                               part_of(&whole->frames, whole->frames.size)};
    for (unsigned j = 0; j < 1u << i % 12; j++) {
      struct pm_section *section = i % 4 == 3 ? &part.header : &part.frames;
      section->bytes[random_below((uint32_t)section->size)] = (uint8_t)random_below(256);
    }
    compile_part(&part, image);
    pm__ehframe_free(&part);
  }
}

static void test_hostile(const char *path) {
  struct library library = {.path = path};
  struct pm_eh_frame whole;
  bool found = find_image(&library) && pm__ehframe_copy(&library.image, &whole);
  CHECK(found);
  if (!found) return;
  truncate_frames(&whole, &library.image, true);
  truncate_frames(&whole, &library.image, false);
  overwrite(&whole, &library.image);
  pm__ehframe_free(&whole);
}

/* Without the linker's table the section is read from front to end: the same rows. */
static void test_without_table(const char *path) {
  struct library library = {.path = path};
  struct pm_eh_frame eh_frame;
  CHECK(find_image(&library) && pm__ehframe_copy(&library.image, &eh_frame));
  uintptr_t lo = library.image.text_lo, hi = library.image.text_hi;
  struct pm_compiled *with = pm__ehframe_compile(&eh_frame, lo, hi);
  eh_frame.header.bytes[2] = 0xff; /* no count: DW_EH_PE_omit */
  struct pm_compiled *without = pm__ehframe_compile(&eh_frame, lo, hi);
  CHECK_EQ_INT(with->table.rows, without->table.rows);
  CHECK(!memcmp(with->table.row, without->table.row, with->table.rows * sizeof(struct pm_row)));
  pm__ehframe_free(&eh_frame);
  pm__compiled_free(with);
  pm__compiled_free(without);
}

int main(void) {
  elf_version(EV_CURRENT);
  /* longjmp and setcontext take the stack pointer out of a buffer: their tails have no rule. */
  test_library("/lib/x86_64-linux-gnu/libc.so.6", 1, 8);
  test_library("/lib64/ld-linux-x86-64.so.2", 1, 4);
  test_library("/lib/x86_64-linux-gnu/libstdc++.so.6", 1, 0);
  test_library("/root/.pyenv/versions/3.12.1/lib/libpython3.12.so.1.0", 4, 0);
  test_library("/root/.pyenv/versions/3.13.0/lib/libpython3.13.so.1.0", 4, 0);
  test_library("/lib/x86_64-linux-gnu/libcrypto.so.3", 4, 60);
  test_without_table("/lib/x86_64-linux-gnu/libc.so.6");
  test_hostile("/lib64/ld-linux-x86-64.so.2");
  pm__image_list_free(&images);
  return check_report();
}
