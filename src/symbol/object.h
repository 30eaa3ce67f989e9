/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file opened for its symbols. What it says is not trusted; libelf checks its bounds. */
#ifndef PM_SYMBOL_OBJECT_H
#define PM_SYMBOL_OBJECT_H

#include <gelf.h>

#include "base/base.h"

/* Larger sections are taken for damage, not read: nobody should fill our host's memory. */
#define PM_OBJECT_SECTION_MAX ((uint64_t)512 << 20)

struct pm_elf {
  Elf *elf;
  int fd;
  const uint8_t *build_id; /* inside the file's data; NULL when it has none */
  size_t build_id_size;
};

/* False when the file cannot be read or is no linked ELF file. */
bool pm__object_open(struct pm_elf *object, const char *path);
/* The same for an image in this process's memory (the vDSO); a wrong address is harmless. */
bool pm__object_open_image(struct pm_elf *object, const void *image);
void pm__object_close(struct pm_elf *object);

bool pm__object_has_build_id(const struct pm_elf *object, const uint8_t *id, size_t size);

/* The next section of `type` after `previous` (NULL: the first), NULL at the end. */
Elf_Scn *pm__object_next_section(const struct pm_elf *object, Elf_Scn *previous, uint32_t type,
                                 GElf_Shdr *header);
/* Its bytes as the file has them, or NULL; `size` bytes, never 0. */
Elf_Data *pm__object_data(Elf_Scn *section, const GElf_Shdr *header);
/* The bytes of the section called `name`, or NULL. */
Elf_Data *pm__object_data_named(const struct pm_elf *object, const char *name);

#endif /* PM_SYMBOL_OBJECT_H */
