/* SPDX-License-Identifier: Apache-2.0 */
/* Finding separate debug files; the places are those of GDB's manual, "Separate Debug Files". */
#include "symbol/debugfile.h"

#include <endian.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A path, or "" when it got too long. */
struct path {
  char text[PATH_MAX];
};

__attribute__((format(printf, 2, 3))) static void set_path(struct path *path, const char *format,
                                                           ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(path->text, sizeof path->text, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof path->text) path->text[0] = '\0';
}

/* root/.build-id/ab/cdef….debug */
static bool open_by_build_id(struct pm_elf *debug, const struct pm_elf *object, const char *root) {
  char hex[2 * 64 + 1];
  size_t size = object->build_id_size;
  if (size < 2 || size > (sizeof hex - 1) / 2) return false;
  for (size_t i = 0; i < size; i++) snprintf(hex + 2 * i, 3, "%02x", object->build_id[i]);
  struct path path;
  set_path(&path, "%s/.build-id/%.2s/%s.debug", root, hex, hex + 2);
  if (!pm__object_open(debug, path.text)) return false;
  if (pm__object_has_build_id(debug, object->build_id, size)) return true;
  pm__object_close(debug);
  return false;
}

/* What .gnu_debuglink holds: a name, NUL, padding to 4 bytes, a CRC-32 in the file's byte order. */
struct link {
  const char *name;
  uint32_t checksum;
};

static bool read_link(const struct pm_elf *object, struct link *link) {
  GElf_Ehdr header;
  Elf_Data *data = pm__object_data_named(object, ".gnu_debuglink");
  if (data == NULL || gelf_getehdr(object->elf, &header) == NULL) return false;
  size_t length = strnlen(data->d_buf, data->d_size), at = (length + 4) / 4 * 4;
  if (length == 0 || at + sizeof link->checksum > data->d_size) return false;
  link->name = data->d_buf;
  uint32_t raw;
  memcpy(&raw, link->name + at, sizeof raw);
  link->checksum = header.e_ident[EI_DATA] == ELFDATA2MSB ? be32toh(raw) : le32toh(raw);
  return strchr(link->name, '/') == NULL; /* a name, not a way out of the folder */
}

/* CRC-32 as in gzip (polynomial 0xedb88320), four bits at a time. */
static uint32_t add_to_checksum(uint32_t sum, const uint8_t *bytes, size_t size) {
  static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                     0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                     0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  for (size_t i = 0; i < size; i++) {
    sum = sum >> 4 ^ table[(sum ^ bytes[i]) & 15];
    sum = sum >> 4 ^ table[(sum ^ (uint32_t)bytes[i] >> 4) & 15];
  }
  return sum;
}

static uint32_t checksum_of(const struct pm_elf *object) {
  uint8_t bytes[16384];
  uint32_t sum = UINT32_MAX;
  off_t at = 0;
  ssize_t got;
  while ((got = pread(object->fd, bytes, sizeof bytes, at)) > 0) {
    sum = add_to_checksum(sum, bytes, (size_t)got);
    at += got;
  }
  return ~sum;
}

static bool belongs(const struct pm_elf *debug, const struct pm_elf *object,
                    const struct link *link) {
  if (debug->build_id_size > 0 && object->build_id_size > 0)
    return pm__object_has_build_id(debug, object->build_id, object->build_id_size);
  return checksum_of(debug) == link->checksum;
}

static bool open_if_belongs(struct pm_elf *debug, const struct pm_elf *object,
                            const struct link *link, const struct path *path) {
  if (path->text[0] == '\0' || !pm__object_open(debug, path->text)) return false;
  if (belongs(debug, object, link)) return true;
  pm__object_close(debug);
  return false;
}

/* The folder the file really lies in, without the last slash: "" for the root folder. */
static void set_folder(struct path *folder, const char *path) {
  char *real = realpath(path, NULL);
  set_path(folder, "%s", real != NULL ? real : path);
  free(real);
  char *slash = strrchr(folder->text, '/');
  if (slash != NULL) *slash = '\0';
  else set_path(folder, ".");
}

static bool open_by_link(struct pm_elf *debug, const struct pm_elf *object, const char *path,
                         const char *root) {
  struct link link;
  if (!read_link(object, &link)) return false;
  struct path folder, place;
  set_folder(&folder, path);
  set_path(&place, "%s/%s", folder.text, link.name);
  if (open_if_belongs(debug, object, &link, &place)) return true;
  set_path(&place, "%s/.debug/%s", folder.text, link.name);
  if (open_if_belongs(debug, object, &link, &place)) return true;
  set_path(&place, "%s%s/%s", root, folder.text, link.name);
  return open_if_belongs(debug, object, &link, &place);
}

bool pm__debugfile_open(struct pm_elf *debug, const struct pm_elf *object, const char *path,
                        const char *root) {
  return open_by_build_id(debug, object, root) || open_by_link(debug, object, path, root);
}
