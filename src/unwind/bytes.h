/* SPDX-License-Identifier: Apache-2.0 */
/* A bounds-checked reader: what lies outside reads as 0 and sets `bad`, for good. */
#ifndef PM_UNWIND_BYTES_H
#define PM_UNWIND_BYTES_H

#include <string.h>

#include "base/base.h"

struct pm_bytes {
  const uint8_t *at;
  const uint8_t *end;
  bool bad;
};

static inline size_t pm__bytes_left(const struct pm_bytes *b) { return (size_t)(b->end - b->at); }

/* The next `size` bytes, or NULL. */
static inline const uint8_t *pm__bytes_take(struct pm_bytes *b, size_t size) {
  if (b->bad || pm__bytes_left(b) < size) {
    b->bad = true;
    return NULL;
  }
  const uint8_t *taken = b->at;
  b->at += size;
  return taken;
}

/* A reader of the next `size` bytes; bad when there are not so many. */
static inline struct pm_bytes pm__bytes_part(struct pm_bytes *b, uint64_t size) {
  const uint8_t *from = size <= SIZE_MAX ? pm__bytes_take(b, (size_t)size) : NULL;
  if (from) return (struct pm_bytes){from, from + size, false};
  b->bad = true;
  return (struct pm_bytes){b->end, b->end, true};
}

#define PM_BYTES_READER(name, type)                        \
  static inline type name(struct pm_bytes *b) {            \
    type value = 0;                                        \
    const uint8_t *from = pm__bytes_take(b, sizeof value); \
    if (from) memcpy(&value, from, sizeof value);          \
    return value;                                          \
  }
PM_BYTES_READER(pm__bytes_u8, uint8_t)
PM_BYTES_READER(pm__bytes_u16, uint16_t)
PM_BYTES_READER(pm__bytes_u32, uint32_t)
PM_BYTES_READER(pm__bytes_u64, uint64_t)
#undef PM_BYTES_READER

/* LEB128. Bits beyond the 64th are dropped, as every consumer of DWARF does. */
static inline uint64_t pm__bytes_uleb(struct pm_bytes *b) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t byte = pm__bytes_u8(b);
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value; /* also at the end: it reads as 0 */
    if (shift > 1024) {
      b->bad = true;
      return 0;
    }
  }
}

static inline int64_t pm__bytes_sleb(struct pm_bytes *b) {
  uint64_t value = 0;
  for (unsigned shift = 0;;) {
    uint8_t byte = pm__bytes_u8(b);
    if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
    shift += 7;
    if (!(byte & 0x80)) {
      if ((byte & 0x40) && shift < 64) value |= ~(uint64_t)0 << shift;
      return (int64_t)value;
    }
    if (shift > 1024) {
      b->bad = true;
      return 0;
    }
  }
}

#endif /* PM_UNWIND_BYTES_H */
