/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs over the loader's list. The callback works under the loader's lock: it
 * copies addresses into memory that was there before, and touches nothing that
 * could fault in.
 */
#include "unwind/image.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/loader.h"

enum { FIRST_IMAGES = 128, FIRST_NAMES = 1 << 14, TRIES = 8 };

static struct pm_load_counts counts_of(const struct dl_phdr_info *info, size_t size) {
  struct pm_load_counts counts = {0, 0};
  if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
    counts.adds = info->dlpi_adds;
    counts.subs = info->dlpi_subs;
  }
  return counts;
}

static int take_counts(struct dl_phdr_info *info, size_t size, void *context) {
  *(struct pm_load_counts *)context = counts_of(info, size);
  return 1;
}

bool pm__image_counts(struct pm_load_counts *counts) {
  *counts = (struct pm_load_counts){0, 0};
  pm__loader_each(take_counts, counts);
  return counts->adds != 0;
}

static struct pm_range range_of(const struct dl_phdr_info *info, const ElfW(Phdr) * phdr) {
  uintptr_t lo = info->dlpi_addr + phdr->p_vaddr;
  return (struct pm_range){lo, lo + phdr->p_memsz};
}

static void add_text(struct pm_image *image, struct pm_range range, bool readable) {
  bool first = !image->text_hi;
  if (first || range.lo < image->text_lo) image->text_lo = range.lo;
  if (first || range.hi > image->text_hi) image->text_hi = range.hi;
  image->text_readable = (first || image->text_readable) && readable;
}

static void add_segment(struct pm_image *image, const struct dl_phdr_info *info,
                        const ElfW(Phdr) * phdr) {
  struct pm_range range = range_of(info, phdr);
  if (range.hi <= range.lo) return;
  if (phdr->p_type == PT_GNU_EH_FRAME) {
    image->header = range.lo;
    image->header_size = range.hi - range.lo;
  } else if (phdr->p_type == PT_NOTE && image->note_count < PM_IMAGE_NOTES) {
    image->notes[image->note_count++] = range;
  } else if (phdr->p_type == PT_LOAD) {
    if ((phdr->p_flags & PF_R) && image->readable_count < PM_IMAGE_RANGES)
      image->readable[image->readable_count++] = range;
    if (phdr->p_flags & PF_X) add_text(image, range, phdr->p_flags & PF_R);
  }
}

static struct pm_image describe(const struct dl_phdr_info *info) {
  struct pm_image image = {.bias = info->dlpi_addr};
  for (unsigned i = 0; i < info->dlpi_phnum; i++) add_segment(&image, info, &info->dlpi_phdr[i]);
  uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
  image.vdso = vdso && image.readable_count && image.readable[0].lo == vdso;
  return image;
}

/* Row offsets are 32 bits wide. */
static bool is_usable(const struct pm_image *image) {
  return image->text_hi > image->text_lo && image->text_hi - image->text_lo < UINT32_MAX;
}

struct scan {
  struct pm_image_list *list;
  uint32_t seen, images, names; /* what would have been needed */
};

static int take_image(struct dl_phdr_info *info, size_t size, void *context) {
  struct scan *scan = context;
  struct pm_image_list *list = scan->list;
  bool main = scan->seen++ == 0; /* the program comes first in glibc's and musl's list */
  list->counts = counts_of(info, size);
  struct pm_image image = describe(info);
  if (!is_usable(&image)) return 0;
  const char *name = info->dlpi_name ? info->dlpi_name : "";
  uint32_t length = (uint32_t)strlen(name) + 1, at = scan->names;
  scan->images++;
  scan->names += length;
  if (scan->images > list->capacity || scan->names > list->names_capacity) return 0;
  memcpy(list->names + at, name, length);
  image.name = at;
  image.main = main;
  list->image[list->count++] = image;
  list->names_size = scan->names;
  return 0;
}

static bool reserve(struct pm_image_list *list, uint32_t images, uint32_t names) {
  pm__image_list_free(list);
  list->image = calloc(images, sizeof *list->image);
  list->names = malloc(names);
  list->capacity = images;
  list->names_capacity = names;
  return list->image && list->names;
}

int pm__image_scan(struct pm_image_list *list) {
  uint32_t images = FIRST_IMAGES, names = FIRST_NAMES;
  *list = (struct pm_image_list){0};
  for (unsigned i = 0; i < TRIES; i++) {
    if (!reserve(list, images, names)) break;
    struct scan scan = {.list = list};
    pm__loader_each(take_image, &scan);
    if (scan.images <= images && scan.names <= names) return 0;
    images = scan.images * 2; /* more may come before the next try */
    names = scan.names * 2;
  }
  pm__image_list_free(list);
  return -1;
}

void pm__image_list_free(struct pm_image_list *list) {
  free(list->image);
  free(list->names);
  *list = (struct pm_image_list){0};
}

static int is_same(struct dl_phdr_info *info, size_t size, void *context) {
  const struct pm_image *wanted = context;
  (void)size;
  if (info->dlpi_addr != wanted->bias) return 0;
  struct pm_image image = describe(info);
  return image.text_lo == wanted->text_lo && image.text_hi == wanted->text_hi &&
         image.header == wanted->header;
}

bool pm__image_present(const struct pm_image *image) {
  struct pm_image wanted = *image;
  return pm__loader_each(is_same, &wanted) != 0;
}
