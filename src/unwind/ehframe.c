/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .eh_frame_hdr (LSB, 10.6) leads to .eh_frame and holds, when the linker wrote
 * it, a table of all FDEs; without it the section is read from front to end.
 */
#include "unwind/ehframe.h"

#include <stdlib.h>

#include "unwind/cfi.h"
#include "unwind/pointer.h"

enum { SECTION_MAX = 1 << 29, LONGEST_LENGTH_FIELD = 12 };

struct header {
  uintptr_t frames;      /* where .eh_frame begins */
  struct pm_bytes table; /* {start, FDE} pairs of sdata4, or empty */
  uint32_t count;
};

static bool read_header(const struct pm_section *section, struct header *header) {
  struct pm_bytes reader = pm__section_from(section, section->address);
  uint8_t version = pm__bytes_u8(&reader), frames_encoding = pm__bytes_u8(&reader);
  uint8_t count_encoding = pm__bytes_u8(&reader), table_encoding = pm__bytes_u8(&reader);
  *header = (struct header){0};
  if (reader.bad || version != 1 || frames_encoding == PM_POINTER_OMITTED) return false;
  header->frames = pm__pointer_read(section, &reader, frames_encoding, section->address);
  if (reader.bad) return false;
  if (count_encoding == PM_POINTER_OMITTED || table_encoding != PM_POINTER_DATA_SDATA4) return true;
  uintptr_t count = pm__pointer_read(section, &reader, count_encoding, section->address);
  if (reader.bad || count > pm__bytes_left(&reader) / 8) return true; /* do without */
  header->count = (uint32_t)count;
  header->table = reader;
  return true;
}

/* One FDE: where its code begins, where it lies itself. */
struct entry {
  uintptr_t start, address;
};

static struct entry next_entry(const struct pm_section *section, struct pm_bytes *table) {
  uintptr_t start = pm__pointer_read(section, table, PM_POINTER_DATA_SDATA4, section->address);
  uintptr_t address = pm__pointer_read(section, table, PM_POINTER_DATA_SDATA4, section->address);
  return (struct entry){start, address};
}

/* The end of the segment that `address` lies in, or `address` itself. */
static uintptr_t segment_end(const struct pm_image *image, uintptr_t address) {
  for (uint32_t i = 0; i < image->readable_count; i++)
    if (address >= image->readable[i].lo && address < image->readable[i].hi)
      return image->readable[i].hi;
  return address;
}

/* With a table the section's end is known: that of its last FDE. */
static uintptr_t frames_end(const struct pm_section *section, const struct header *header,
                            uintptr_t limit) {
  struct pm_bytes table = header->table;
  uintptr_t last = 0;
  for (uint32_t i = 0; i < header->count; i++) {
    struct entry entry = next_entry(section, &table);
    if (entry.address > last && entry.address < limit) last = entry.address;
  }
  uint8_t field[LONGEST_LENGTH_FIELD];
  size_t got = last ? pm__section_read(field, last, sizeof field) : 0;
  struct pm_bytes reader = {field, field + got, false};
  uint64_t length = pm__bytes_u32(&reader);
  if (reader.bad || length == UINT32_MAX || length + 4 > limit - last) return limit;
  return last + 4 + (uintptr_t)length;
}

bool pm__ehframe_copy(const struct pm_image *image, struct pm_eh_frame *out) {
  struct header header;
  *out = (struct pm_eh_frame){0};
  if (!image->header || image->header_size > SECTION_MAX) return false;
  if (!pm__section_copy(&out->header, image->header, image->header_size)) return false;
  if (read_header(&out->header, &header)) {
    uintptr_t limit = segment_end(image, header.frames);
    if (header.count && limit > header.frames) limit = frames_end(&out->header, &header, limit);
    if (limit > header.frames && limit - header.frames <= SECTION_MAX &&
        pm__section_copy(&out->frames, header.frames, limit - header.frames))
      return true;
  }
  pm__ehframe_free(out);
  return false;
}

void pm__ehframe_free(struct pm_eh_frame *eh_frame) {
  pm__section_free(&eh_frame->header);
  pm__section_free(&eh_frame->frames);
}

struct entries {
  struct entry *entry;
  uint32_t count, capacity;
};

static bool add_entry(struct entries *entries, struct entry entry) {
  if (entries->count == entries->capacity) {
    uint32_t capacity = entries->capacity ? entries->capacity * 2 : 256;
    struct entry *grown = realloc(entries->entry, capacity * sizeof *grown);
    if (!grown) return false;
    entries->entry = grown;
    entries->capacity = capacity;
  }
  entries->entry[entries->count++] = entry;
  return true;
}

static bool list_from_table(const struct pm_section *section, const struct header *header,
                            struct entries *entries) {
  struct pm_bytes table = header->table;
  for (uint32_t i = 0; i < header->count; i++)
    if (!add_entry(entries, next_entry(section, &table))) return false;
  return true;
}

static bool list_by_reading(const struct pm_section *section, struct entries *entries) {
  struct pm_cie cie = {0};
  struct pm_fde fde;
  uintptr_t next;
  for (uintptr_t at = section->address; at; at = next)
    if (pm__cfi_read(section, at, &cie, &fde, &next) &&
        !add_entry(entries, (struct entry){fde.start, at}))
      return false;
  return true;
}

static int by_start(const void *left, const void *right) {
  const struct entry *a = left, *b = right;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->address < b->address ? -1 : a->address > b->address;
}

/* The linker's table is sorted already; qsort on 60,000 entries would cost more than the rest. */
static void sort(struct entries *entries) {
  for (uint32_t i = 1; i < entries->count; i++)
    if (by_start(&entries->entry[i - 1], &entries->entry[i]) > 0) {
      qsort(entries->entry, entries->count, sizeof *entries->entry, by_start);
      return;
    }
}

static void compile_entry(const struct pm_section *frames, uintptr_t address, struct pm_cie *cie,
                          struct pm_builder *builder) {
  struct pm_fde fde;
  uintptr_t next;
  if (!pm__cfi_read(frames, address, cie, &fde, &next) ||
      !pm__builder_function(builder, fde.start, fde.end) ||
      !pm__cfi_execute(frames, cie, &fde, builder))
    builder->rejected++;
}

struct pm_compiled *pm__ehframe_compile(const struct pm_eh_frame *eh_frame, uintptr_t lo,
                                        uintptr_t hi) {
  struct header header = {0};
  struct entries entries = {0};
  struct pm_builder builder;
  struct pm_cie cie = {0};
  pm__builder_begin(&builder, lo, hi);
  bool listed = read_header(&eh_frame->header, &header) && header.count
                    ? list_from_table(&eh_frame->header, &header, &entries)
                    : list_by_reading(&eh_frame->frames, &entries);
  if (!listed) builder.out_of_memory = true;
  sort(&entries);
  for (uint32_t i = 0; i < entries.count; i++)
    compile_entry(&eh_frame->frames, entries.entry[i].address, &cie, &builder);
  free(entries.entry);
  return pm__builder_finish(&builder);
}
