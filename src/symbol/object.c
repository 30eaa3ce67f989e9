/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening ELF files. They are read, never mapped: a file that is cut short while
 * we look at it would otherwise kill the process with SIGBUS.
 */
#include "symbol/object.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  IMAGE_STEP = 4096, /* no page is smaller, so a step never straddles the image's end */
  IMAGE_STEPS_MAX = 64,
  NOTES_MAX = 1 << 20,
};

Elf_Scn *pm__object_next_section(const struct pm_elf *object, Elf_Scn *previous, uint32_t type,
                                 GElf_Shdr *header) {
  Elf_Scn *section = previous;
  while ((section = elf_nextscn(object->elf, section)) != NULL)
    if (gelf_getshdr(section, header) != NULL && header->sh_type == type) return section;
  return NULL;
}

Elf_Data *pm__object_data(Elf_Scn *section, const GElf_Shdr *header) {
  if (header->sh_type == SHT_NOBITS || header->sh_size > PM_OBJECT_SECTION_MAX) return NULL;
  if ((header->sh_flags & SHF_COMPRESSED) != 0) return NULL;
  Elf_Data *data = elf_getdata(section, NULL);
  return data != NULL && data->d_buf != NULL && data->d_size > 0 ? data : NULL;
}

Elf_Data *pm__object_data_named(const struct pm_elf *object, const char *name) {
  size_t strings;
  if (elf_getshdrstrndx(object->elf, &strings) != 0) return NULL;
  Elf_Scn *section = NULL;
  while ((section = elf_nextscn(object->elf, section)) != NULL) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == NULL) continue;
    const char *found = elf_strptr(object->elf, strings, header.sh_name);
    if (found != NULL && strcmp(found, name) == 0) return pm__object_data(section, &header);
  }
  return NULL;
}

static bool take_build_id(struct pm_elf *object, Elf_Data *notes) {
  size_t offset = 0, name, descriptor;
  GElf_Nhdr note;
  while ((offset = gelf_getnote(notes, offset, &note, &name, &descriptor)) > 0) {
    const uint8_t *bytes = notes->d_buf;
    if (note.n_type != NT_GNU_BUILD_ID || note.n_descsz == 0) continue;
    if (note.n_namesz != sizeof "GNU" || memcmp(bytes + name, "GNU", sizeof "GNU") != 0) continue;
    object->build_id = bytes + descriptor;
    object->build_id_size = note.n_descsz;
    return true;
  }
  return false;
}

static bool find_build_id_in_sections(struct pm_elf *object) {
  GElf_Shdr header;
  Elf_Scn *section = NULL;
  while ((section = pm__object_next_section(object, section, SHT_NOTE, &header)) != NULL) {
    Elf_Data *notes = header.sh_size <= NOTES_MAX ? pm__object_data(section, &header) : NULL;
    if (notes != NULL && take_build_id(object, notes)) return true;
  }
  return false;
}

/* For files whose section headers were stripped. */
static bool find_build_id_in_segments(struct pm_elf *object) {
  size_t count;
  if (elf_getphdrnum(object->elf, &count) != 0) return false;
  for (size_t i = 0; i < count && i < PN_XNUM; i++) {
    GElf_Phdr segment;
    if (gelf_getphdr(object->elf, (int)i, &segment) == NULL) continue;
    if (segment.p_type != PT_NOTE || segment.p_filesz > NOTES_MAX) continue;
    Elf_Type type = segment.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
    Elf_Data *notes = elf_getdata_rawchunk(object->elf, (int64_t)segment.p_offset,
                                           (size_t)segment.p_filesz, type);
    if (notes != NULL && notes->d_buf != NULL && take_build_id(object, notes)) return true;
  }
  return false;
}

static bool is_linked_elf(Elf *elf) {
  GElf_Ehdr header;
  if (elf == NULL || elf_kind(elf) != ELF_K_ELF || gelf_getehdr(elf, &header) == NULL) return false;
  return header.e_type == ET_EXEC || header.e_type == ET_DYN;
}

/* Takes over `fd`. */
static bool open_descriptor(struct pm_elf *object, int fd) {
  *object = (struct pm_elf){.fd = fd};
  if (elf_version(EV_CURRENT) != EV_NONE) object->elf = elf_begin(fd, ELF_C_READ, NULL);
  if (!is_linked_elf(object->elf)) {
    pm__object_close(object);
    return false;
  }
  if (!find_build_id_in_sections(object)) find_build_id_in_segments(object);
  return true;
}

bool pm__object_open(struct pm_elf *object, const char *path) {
  /* O_NONBLOCK: a FIFO of that name must not stop us; a regular file does not care. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  struct stat status;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return open_descriptor(object, fd);
  close(fd);
  return false;
}

/*
 * The kernel copies, so that an unmapped page ends the image instead of the
 * process. What follows the image may come along; its headers do not name it.
 */
bool pm__object_open_image(struct pm_elf *object, const void *image) {
  if (image == NULL) return false;
  int fd = memfd_create("pyrometer-image", MFD_CLOEXEC);
  if (fd < 0) return false;
  const char *step = image;
  for (int i = 0; i < IMAGE_STEPS_MAX; i++, step += IMAGE_STEP)
    if (write(fd, step, IMAGE_STEP) != IMAGE_STEP) break;
  return open_descriptor(object, fd);
}

void pm__object_close(struct pm_elf *object) {
  if (object->elf != NULL) elf_end(object->elf);
  close(object->fd);
  *object = (struct pm_elf){.fd = -1};
}

bool pm__object_has_build_id(const struct pm_elf *object, const uint8_t *id, size_t size) {
  return size > 0 && object->build_id_size == size && memcmp(object->build_id, id, size) == 0;
}
