/* SPDX-License-Identifier: Apache-2.0 */
/* Who an image is: build-id, fingerprint, path. Works outside the loader's lock. */
#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/image.h"
#include "unwind/section.h"

enum { NOTES_MAX = 4096, HEADER_HASHED = 4096 };

/* Steps to the next note; false at the end. Names and descriptions are padded to four bytes. */
static bool next_note(struct pm_bytes *reader, uint32_t *type, struct pm_bytes *name,
                      struct pm_bytes *description) {
  uint32_t name_size = pm__bytes_u32(reader), size = pm__bytes_u32(reader);
  *type = pm__bytes_u32(reader);
  *name = pm__bytes_part(reader, name_size);
  (void)pm__bytes_take(reader, -name_size & 3u);
  *description = pm__bytes_part(reader, size);
  if (reader->bad) return false;
  size_t padding = -size & 3u;
  (void)pm__bytes_take(reader, padding < pm__bytes_left(reader) ? padding : pm__bytes_left(reader));
  return true;
}

static size_t find_build_id(struct pm_bytes reader, uint8_t *out, size_t capacity) {
  struct pm_bytes name, description;
  uint32_t type;
  while (next_note(&reader, &type, &name, &description)) {
    if (type != NT_GNU_BUILD_ID || pm__bytes_left(&name) != sizeof "GNU" ||
        memcmp(name.at, "GNU", sizeof "GNU"))
      continue;
    size_t size = pm__bytes_left(&description);
    if (size > capacity) return 0;
    memcpy(out, description.at, size);
    return size;
  }
  return 0;
}

static size_t read_notes(const struct pm_image *image, uint32_t index, uint8_t *buffer) {
  const struct pm_range *range = &image->notes[index];
  size_t size = range->hi - range->lo;
  return pm__section_read(buffer, range->lo, size < NOTES_MAX ? size : NOTES_MAX);
}

size_t pm__image_build_id(const struct pm_image *image, uint8_t *out, size_t capacity) {
  uint8_t notes[NOTES_MAX];
  for (uint32_t i = 0; i < image->note_count; i++) {
    size_t size = read_notes(image, i, notes);
    size_t found = find_build_id((struct pm_bytes){notes, notes + size, false}, out, capacity);
    if (found) return found;
  }
  return 0;
}

/* FNV-1a. */
static uint64_t hash(uint64_t seed, const uint8_t *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) seed = (seed ^ bytes[i]) * 0x100000001b3u;
  return seed;
}

uint64_t pm__image_fingerprint(const struct pm_image *image) {
  uint8_t buffer[HEADER_HASHED > NOTES_MAX ? HEADER_HASHED : NOTES_MAX];
  uint64_t seed = 0xcbf29ce484222325u;
  for (uint32_t i = 0; i < image->note_count; i++)
    seed = hash(seed, buffer, read_notes(image, i, buffer));
  size_t size = image->header_size < HEADER_HASHED ? image->header_size : HEADER_HASHED;
  return image->header ? hash(seed, buffer, pm__section_read(buffer, image->header, size)) : seed;
}

/*
 * /proc/self/exe of a program that was replaced on disk ends in " (deleted)". The
 * name before is where the new one lies; the build-id tells the two apart.
 */
static void cut_deleted(char *path) {
  static const char mark[] = " (deleted)";
  size_t length = strlen(path), tail = sizeof mark - 1;
  struct stat status;
  if (length <= tail || strcmp(path + length - tail, mark) || !stat(path, &status)) return;
  path[length - tail] = 0;
}

char *pm__image_path(const struct pm_image_list *list, const struct pm_image *image) {
  const char *name = list->names + image->name;
  if (image->vdso) return strdup("[vdso]");
  if (!image->main) return strdup(name);
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return strdup(name);
  path[length] = 0;
  cut_deleted(path);
  return strdup(path);
}
