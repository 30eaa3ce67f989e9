/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of one file, sorted by address. */
#ifndef PM_SYMBOL_INDEX_H
#define PM_SYMBOL_INDEX_H

#include "symbol/object.h"

#define PM_INDEX_NONE UINT32_MAX

struct pm_index_symbol {
  uint64_t start;
  uint32_t size;
  uint32_t name;       /* offset into strings */
  uint32_t enclosing;  /* the nearest earlier symbol that reaches beyond start, or NONE */
  uint16_t preference; /* smaller: the better of two names for one range */
  uint16_t flags;
};

/* Zero-initialised: empty. */
struct pm_index {
  struct pm_index_symbol *symbols;
  uint32_t count;
  char *strings; /* the string tables, one after the other, each closed by a NUL of ours */
  size_t strings_size;
};

/*
 * Adds the functions of the object's symbol tables of `type` (SHT_SYMTAB or
 * SHT_DYNSYM). What cannot be read, or does not fit into memory, adds nothing.
 */
void pm__index_add(struct pm_index *index, const struct pm_elf *object, uint32_t type);
/*
 * Adds "[plt]" for each section of linkage stubs: no symbol table names them, and
 * calls between libraries spend a measurable part of their time there.
 */
void pm__index_add_stubs(struct pm_index *index, const struct pm_elf *object);
/* Sorts; to be called once, after the last pm__index_add. */
void pm__index_finish(struct pm_index *index);
void pm__index_free(struct pm_index *index);

/* The symbol that covers `address`, the innermost one, or PM_INDEX_NONE. */
uint32_t pm__index_find(const struct pm_index *index, uint64_t address);
const char *pm__index_name(const struct pm_index *index, uint32_t symbol);

#endif /* PM_SYMBOL_INDEX_H */
