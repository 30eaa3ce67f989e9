/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that are loaded now, as the loader and their headers tell. */
#ifndef PM_UNWIND_IMAGE_H
#define PM_UNWIND_IMAGE_H

#include "base/base.h"

enum { PM_IMAGE_RANGES = 12, PM_IMAGE_NOTES = 4 };

struct pm_range {
  uintptr_t lo, hi;
};

/* Addresses only: taken inside dl_iterate_phdr's callback, while nothing can be unmapped. */
struct pm_image {
  uintptr_t bias;
  uintptr_t text_lo, text_hi; /* from the first executable byte to the last */
  uintptr_t header;           /* .eh_frame_hdr; 0: none */
  size_t header_size;
  struct pm_range readable[PM_IMAGE_RANGES]; /* loaded, readable segments */
  struct pm_range notes[PM_IMAGE_NOTES];
  uint32_t readable_count, note_count;
  uint32_t name; /* where its name begins in the list's names */
  bool main;     /* the program itself */
  bool vdso;
  bool text_readable;
};

/* How often objects were loaded and unloaded so far. */
struct pm_load_counts {
  uint64_t adds, subs;
};

struct pm_image_list {
  struct pm_image *image;
  char *names; /* NUL-terminated, one behind the other */
  uint32_t count, capacity;
  uint32_t names_size, names_capacity;
  struct pm_load_counts counts;
};

/* Cheap: looks at the first object only. False where the loader does not count. */
bool pm__image_counts(struct pm_load_counts *counts);

/* All loaded objects with text; 0 or -1 (out of memory). Free the list either way. */
int pm__image_scan(struct pm_image_list *list);
void pm__image_list_free(struct pm_image_list *list);

/* Is an object with this very text and header still loaded? */
bool pm__image_present(const struct pm_image *image);

/* Copies the build-id; returns its size, 0 for none or one beyond `capacity`. */
size_t pm__image_build_id(const struct pm_image *image, uint8_t *out, size_t capacity);

/*
 * A number that differs between objects which take each other's place at one
 * address: a hash of the notes and of the unwind header's first bytes.
 */
uint64_t pm__image_fingerprint(const struct pm_image *image);

/* The path to show and to look symbols up in; malloc. NULL: out of memory. */
char *pm__image_path(const struct pm_image_list *list, const struct pm_image *image);

#endif /* PM_UNWIND_IMAGE_H */
