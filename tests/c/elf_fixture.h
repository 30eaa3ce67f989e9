/* SPDX-License-Identifier: Apache-2.0 */
/* Small ELF files made in memory: one text section, one symbol table, notes as asked for. */
#ifndef PM_TESTS_ELF_FIXTURE_H
#define PM_TESTS_ELF_FIXTURE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { FIXTURE_TEXT = 0x1000, FIXTURE_TEXT_SIZE = 0x1000, FIXTURE_MAX = 8192, FIXTURE_ID = 20 };

struct fixture_symbol {
  const char *name;
  uint64_t value;
  uint64_t size;
  unsigned type;
  unsigned binding;
};

struct fixture {
  const struct fixture_symbol *symbols;
  size_t count;
  uint32_t table;           /* SHT_SYMTAB or SHT_DYNSYM */
  const uint8_t *build_id;  /* FIXTURE_ID bytes, or NULL */
  const char *debuglink;    /* or NULL */
  uint32_t checksum;        /* of the debuglink */
};

/* The file as it grows; sections are laid out in the order they are added. */
struct fixture_file {
  uint8_t bytes[FIXTURE_MAX];
  size_t size;
  Elf64_Shdr sections[8];
  uint16_t section_count;
  char names[128];
  size_t names_size;
};

static inline size_t fixture_put(struct fixture_file *file, const void *bytes, size_t size) {
  size_t at = (file->size + 7) / 8 * 8;
  if (size > 0) memcpy(file->bytes + at, bytes, size);
  file->size = at + size;
  return at;
}

static inline Elf64_Shdr *fixture_section(struct fixture_file *file, const char *name,
                                          uint32_t type, const void *bytes, size_t size) {
  Elf64_Shdr *section = &file->sections[file->section_count++];
  *section = (Elf64_Shdr){.sh_name = (uint32_t)file->names_size, .sh_type = type};
  memcpy(file->names + file->names_size, name, strlen(name) + 1);
  file->names_size += strlen(name) + 1;
  section->sh_offset = fixture_put(file, bytes, size);
  section->sh_size = size;
  section->sh_addralign = 4;
  return section;
}

static inline void fixture_add_symbols(struct fixture_file *file, const struct fixture *fixture) {
  Elf64_Sym symbols[64] = {0};
  char strings[4096] = "";
  size_t used = 1;
  for (size_t i = 0; i < fixture->count; i++) {
    const struct fixture_symbol *from = &fixture->symbols[i];
    symbols[i + 1] = (Elf64_Sym){.st_name = (uint32_t)used, .st_shndx = 1, .st_size = from->size};
    symbols[i + 1].st_value = from->value;
    symbols[i + 1].st_info = (uint8_t)ELF64_ST_INFO(from->binding, from->type);
    memcpy(strings + used, from->name, strlen(from->name) + 1);
    used += strlen(from->name) + 1;
  }
  Elf64_Shdr *table = fixture_section(file, ".symbols", fixture->table, symbols,
                                      (fixture->count + 1) * sizeof symbols[0]);
  table->sh_entsize = sizeof symbols[0];
  table->sh_link = file->section_count;
  fixture_section(file, ".strings", SHT_STRTAB, strings, used);
}

static inline void fixture_add_build_id(struct fixture_file *file, const uint8_t *id) {
  struct {
    Elf64_Nhdr header;
    char name[4];
    uint8_t id[FIXTURE_ID];
  } note = {.header = {4, FIXTURE_ID, NT_GNU_BUILD_ID}, .name = "GNU"};
  memcpy(note.id, id, FIXTURE_ID);
  fixture_section(file, ".note", SHT_NOTE, &note, sizeof note);
}

static inline void fixture_add_debuglink(struct fixture_file *file, const char *name,
                                         uint32_t checksum) {
  char bytes[256] = "";
  size_t at = (strlen(name) + 4) / 4 * 4;
  memcpy(bytes, name, strlen(name));
  memcpy(bytes + at, &checksum, sizeof checksum);
  fixture_section(file, ".gnu_debuglink", SHT_PROGBITS, bytes, at + sizeof checksum);
}

static inline void fixture_close(struct fixture_file *file) {
  Elf64_Shdr *names = fixture_section(file, ".names", SHT_STRTAB, NULL, 0);
  names->sh_offset = fixture_put(file, file->names, file->names_size);
  names->sh_size = file->names_size;
  Elf64_Ehdr header = {.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof file->sections[0];
  header.e_shnum = file->section_count;
  header.e_shstrndx = (uint16_t)(file->section_count - 1);
  header.e_shoff = fixture_put(file, file->sections, file->section_count * sizeof *names);
  memcpy(file->bytes, &header, sizeof header);
}

static inline void fixture_make(struct fixture_file *file, const struct fixture *fixture) {
  memset(file, 0, sizeof *file);
  file->size = sizeof(Elf64_Ehdr);
  fixture_section(file, "", SHT_NULL, NULL, 0);
  Elf64_Shdr *text = fixture_section(file, ".text", SHT_NOBITS, NULL, 0);
  text->sh_addr = FIXTURE_TEXT;
  text->sh_size = FIXTURE_TEXT_SIZE;
  text->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  if (fixture->count > 0) fixture_add_symbols(file, fixture);
  if (fixture->build_id != NULL) fixture_add_build_id(file, fixture->build_id);
  if (fixture->debuglink != NULL)
    fixture_add_debuglink(file, fixture->debuglink, fixture->checksum);
  fixture_close(file);
}

#endif /* PM_TESTS_ELF_FIXTURE_H */
