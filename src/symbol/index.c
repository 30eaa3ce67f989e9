/* SPDX-License-Identifier: Apache-2.0 */
/* Reading symbol tables, and the two sweeps that turn them into a searchable index. */
#include "symbol/index.h"

#include <stdlib.h>
#include <string.h>

enum { UNSIZED = 1 << 0, LABEL = 1 << 1 }; /* flags; LABEL: STT_NOTYPE */

/* The executable sections of an object, sorted: only addresses inside them are functions. */
struct range {
  uint64_t start;
  uint64_t end;
};

struct ranges {
  struct range *items;
  size_t count;
};

static int compare_ranges(const void *left, const void *right) {
  const struct range *a = left, *b = right;
  return (a->start > b->start) - (a->start < b->start);
}

static bool is_text(const GElf_Shdr *header) {
  const uint64_t wanted = SHF_ALLOC | SHF_EXECINSTR;
  return (header->sh_flags & wanted) == wanted && header->sh_size > 0 &&
         header->sh_addr + header->sh_size > header->sh_addr;
}

static struct ranges find_text(const struct pm_elf *object) {
  struct ranges text = {0};
  size_t sections;
  if (elf_getshdrnum(object->elf, &sections) != 0 || sections == 0) return text;
  text.items = calloc(sections, sizeof *text.items);
  if (text.items == NULL) return text;
  Elf_Scn *section = NULL;
  while ((section = elf_nextscn(object->elf, section)) != NULL && text.count < sections) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == NULL || !is_text(&header)) continue;
    text.items[text.count++] = (struct range){header.sh_addr, header.sh_addr + header.sh_size};
  }
  qsort(text.items, text.count, sizeof *text.items, compare_ranges);
  return text;
}

/* The end of the section that holds `address`, or 0. */
static uint64_t text_end(const struct ranges *text, uint64_t address) {
  size_t low = 0, high = text->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (text->items[middle].start <= address) low = middle + 1;
    else high = middle;
  }
  return low > 0 && address < text->items[low - 1].end ? text->items[low - 1].end : 0;
}

static bool is_function(const GElf_Sym *symbol) {
  int type = GELF_ST_TYPE(symbol->st_info);
  if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS) return false;
  return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

/* "$x" and the like mark code for disassemblers (aarch64); ".L" labels are the assembler's. */
static bool is_marker(const char *name) {
  return name[0] == '\0' || name[0] == '$' || (name[0] == '.' && name[1] == 'L');
}

/*
 * Of several names for one range the one a reader knows best: the fewest leading
 * underscores (write, not __write), then the widest binding, then the shortest.
 */
static uint16_t rate_name(const char *name, int binding) {
  size_t underscores = strspn(name, "_"), length = strlen(name);
  if (underscores == 1 && (name[1] == 'Z' || name[1] == 'R')) underscores = 0; /* mangled */
  if (underscores > 7) underscores = 7;
  unsigned bound = binding == STB_LOCAL ? 2 : binding == STB_WEAK ? 1 : 0;
  return (uint16_t)(underscores << 10 | bound << 8 | (length > 255 ? 255 : length));
}

static void add_symbol(struct pm_index *index, const GElf_Sym *symbol, uint64_t limit,
                       uint32_t name) {
  const char *text = index->strings + name;
  if (is_marker(text)) return;
  uint64_t room = limit - symbol->st_value;
  uint64_t size = symbol->st_size == 0 || symbol->st_size > room ? room : symbol->st_size;
  bool label = GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE;
  index->symbols[index->count++] = (struct pm_index_symbol){
      .start = symbol->st_value,
      .size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size,
      .name = name,
      .enclosing = PM_INDEX_NONE,
      .preference = rate_name(text, GELF_ST_BIND(symbol->st_info)),
      .flags = (uint16_t)((symbol->st_size == 0 ? UNSIZED : 0) | (label ? LABEL : 0)),
  };
}

/* Copies the string table; `*base` is where it starts in ours. */
static bool add_strings(struct pm_index *index, const Elf_Data *strings, size_t *base) {
  *base = index->strings_size;
  if (strings->d_size >= UINT32_MAX - index->strings_size) return false;
  char *grown = realloc(index->strings, index->strings_size + strings->d_size + 1);
  if (grown == NULL) return false;
  memcpy(grown + *base, strings->d_buf, strings->d_size);
  grown[*base + strings->d_size] = '\0';
  index->strings = grown;
  index->strings_size = *base + strings->d_size + 1;
  return true;
}

static bool make_room(struct pm_index *index, size_t more) {
  if (more > UINT32_MAX / 2 || index->count > UINT32_MAX / 2) return false;
  struct pm_index_symbol *grown = realloc(index->symbols, (index->count + more) * sizeof *grown);
  if (grown == NULL) return false;
  index->symbols = grown;
  return true;
}

static void add_table(struct pm_index *index, Elf_Data *symbols, size_t count,
                      const struct ranges *text, const Elf_Data *strings) {
  size_t base;
  if (count == 0 || count > INT32_MAX || !make_room(index, count)) return;
  if (!add_strings(index, strings, &base)) return;
  for (size_t i = 0; i < count; i++) {
    GElf_Sym symbol;
    if (gelf_getsym(symbols, (int)i, &symbol) == NULL || !is_function(&symbol)) continue;
    uint64_t limit = text_end(text, symbol.st_value);
    if (limit == 0 || symbol.st_name >= strings->d_size) continue;
    add_symbol(index, &symbol, limit, (uint32_t)(base + symbol.st_name));
  }
}

static Elf_Data *strings_of(const struct pm_elf *object, const GElf_Shdr *table) {
  GElf_Shdr header;
  Elf_Scn *section = elf_getscn(object->elf, table->sh_link);
  if (section == NULL || gelf_getshdr(section, &header) == NULL) return NULL;
  return header.sh_type == SHT_STRTAB ? pm__object_data(section, &header) : NULL;
}

void pm__index_add(struct pm_index *index, const struct pm_elf *object, uint32_t type) {
  GElf_Shdr header; /* of the one table of that type */
  Elf_Scn *section = pm__object_next_section(object, NULL, type, &header);
  if (section == NULL) return;
  Elf_Data *symbols = pm__object_data(section, &header);
  Elf_Data *strings = strings_of(object, &header);
  size_t entry = gelf_fsize(object->elf, ELF_T_SYM, 1, EV_CURRENT);
  if (symbols == NULL || strings == NULL || entry == 0) return;
  struct ranges text = find_text(object);
  if (text.count > 0) add_table(index, symbols, symbols->d_size / entry, &text, strings);
  free(text.items);
}

/* The offset of our own string for stubs; SIZE_MAX when memory is short. */
static size_t add_stub_name(struct pm_index *index) {
  static const char name[] = "[plt]";
  char text[sizeof name];
  memcpy(text, name, sizeof text);
  const Elf_Data strings = {.d_buf = text, .d_size = sizeof text};
  size_t base;
  return add_strings(index, &strings, &base) ? base : SIZE_MAX;
}

static bool is_stubs(const struct pm_elf *object, size_t names, const GElf_Shdr *header) {
  const char *name = elf_strptr(object->elf, names, header->sh_name);
  return name != NULL && strncmp(name, ".plt", 4) == 0 && is_text(header);
}

void pm__index_add_stubs(struct pm_index *index, const struct pm_elf *object) {
  size_t names, name = SIZE_MAX;
  Elf_Scn *section = NULL;
  if (elf_getshdrstrndx(object->elf, &names) != 0) return;
  while ((section = elf_nextscn(object->elf, section)) != NULL) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == NULL || !is_stubs(object, names, &header)) continue;
    if (name == SIZE_MAX) name = add_stub_name(index);
    if (name == SIZE_MAX || !make_room(index, 1)) return;
    GElf_Sym stub = {.st_value = header.sh_addr,
                     .st_size = header.sh_size,
                     .st_info = GELF_ST_INFO(STB_LOCAL, STT_FUNC)};
    add_symbol(index, &stub, header.sh_addr + header.sh_size, (uint32_t)name);
  }
}

static uint32_t stated_size(const struct pm_index_symbol *symbol) {
  return (symbol->flags & UNSIZED) != 0 ? 0 : symbol->size;
}

/* By address; at one address the outer before the inner, the better name first. */
static int compare_symbols(const void *left, const void *right) {
  const struct pm_index_symbol *a = left, *b = right;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  uint32_t size_a = stated_size(a), size_b = stated_size(b);
  if (size_a != size_b) return size_a > size_b ? -1 : 1;
  int label_a = a->flags & LABEL, label_b = b->flags & LABEL;
  if (label_a != label_b) return label_a - label_b;
  if (a->preference != b->preference) return a->preference < b->preference ? -1 : 1;
  return (a->name > b->name) - (a->name < b->name);
}

static bool same_range(const struct pm_index_symbol *a, const struct pm_index_symbol *b) {
  return a->start == b->start && stated_size(a) == stated_size(b);
}

static uint64_t end_of(const struct pm_index_symbol *symbol) {
  return symbol->start + symbol->size;
}

/*
 * One pass in address order that keeps the best name of each range, drops labels
 * and unsized symbols that lie inside a sized one, ends the other unsized ones
 * where the next symbol starts, and links each symbol to the one around it.
 */
static uint32_t sweep(struct pm_index_symbol *symbols, uint32_t count) {
  uint32_t kept = 0, open = PM_INDEX_NONE;
  for (uint32_t i = 0; i < count; i++) {
    struct pm_index_symbol symbol = symbols[i];
    struct pm_index_symbol *last = kept > 0 ? &symbols[kept - 1] : NULL;
    if (last != NULL && same_range(last, &symbol)) continue;
    while (open != PM_INDEX_NONE && end_of(&symbols[open]) <= symbol.start)
      open = symbols[open].enclosing;
    if (symbol.flags != 0 && open != PM_INDEX_NONE) continue;
    if (last != NULL && (last->flags & UNSIZED) != 0 && end_of(last) > symbol.start)
      last->size = (uint32_t)(symbol.start - last->start);
    symbol.enclosing = open;
    if ((symbol.flags & UNSIZED) == 0) open = kept;
    symbols[kept++] = symbol;
  }
  return kept;
}

void pm__index_finish(struct pm_index *index) {
  if (index->count == 0) return;
  qsort(index->symbols, index->count, sizeof *index->symbols, compare_symbols);
  index->count = sweep(index->symbols, index->count);
  struct pm_index_symbol *fitted = realloc(index->symbols, index->count * sizeof *fitted);
  if (fitted != NULL) index->symbols = fitted;
}

void pm__index_free(struct pm_index *index) {
  free(index->symbols);
  free(index->strings);
  *index = (struct pm_index){0};
}

uint32_t pm__index_find(const struct pm_index *index, uint64_t address) {
  uint32_t low = 0, high = index->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (index->symbols[middle].start <= address) low = middle + 1;
    else high = middle;
  }
  uint32_t found = low > 0 ? low - 1 : PM_INDEX_NONE;
  while (found != PM_INDEX_NONE && end_of(&index->symbols[found]) <= address)
    found = index->symbols[found].enclosing;
  return found;
}

const char *pm__index_name(const struct pm_index *index, uint32_t symbol) {
  return index->strings + index->symbols[symbol].name;
}
