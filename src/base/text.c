/* SPDX-License-Identifier: Apache-2.0 */
/* See text.h. */
#include "base/text.h"

#include <string.h>

/* The bytes that follow a lead byte, -1 when it is none. */
static int tail_size(unsigned char lead) {
  if (lead < 0x80) {
    return 0;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return 1;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    return 2;
  }
  return lead >= 0xF0 && lead <= 0xF4 ? 3 : -1;
}

/* Overlong forms, surrogates and values past U+10FFFF show in the second byte (RFC 3629). */
static bool second_allowed(unsigned char lead, unsigned char second) {
  switch (lead) {
  case 0xE0: return second >= 0xA0;
  case 0xED: return second <= 0x9F;
  case 0xF0: return second >= 0x90;
  case 0xF4: return second <= 0x8F;
  default: return true;
  }
}

/* Size of the UTF-8 sequence at `at`, 0 when there is none. Stops at the NUL. */
static size_t sequence_size(const unsigned char *at) {
  int tail = tail_size(at[0]);
  if (tail < 0) {
    return 0;
  }
  for (int i = 1; i <= tail; i++) {
    if ((at[i] & 0xC0) != 0x80) {
      return 0;
    }
  }
  return tail > 0 && !second_allowed(at[0], at[1]) ? 0 : (size_t)tail + 1;
}

/* C0, DEL, C1 and the two Unicode line breaks: readers split lines at some of them. */
static bool breaks_lines(const unsigned char *at, size_t size) {
  if (size == 1) {
    return at[0] < 0x20 || at[0] == 0x7F;
  }
  if (size == 2) {
    return at[0] == 0xC2 && at[1] < 0xA0;
  }
  return size == 3 && at[0] == 0xE2 && at[1] == 0x80 && (at[2] == 0xA8 || at[2] == 0xA9);
}

static bool is_clean(const unsigned char *at) {
  while (*at != 0) {
    size_t size = sequence_size(at);
    if (size == 0 || breaks_lines(at, size)) {
      return false;
    }
    at += size;
  }
  return true;
}

/* Writes the clean form of one character, returns how far the input moved. */
static size_t clean_one(const unsigned char *at, char **out) {
  size_t size = sequence_size(at);
  if (size == 0) {
    memcpy(*out, "\xEF\xBF\xBD", 3);
    *out += 3;
    return 1;
  }
  if (breaks_lines(at, size)) {
    *(*out)++ = ' ';
    return size;
  }
  memcpy(*out, at, size);
  *out += size;
  return size;
}

const char *pm__text_clean(struct pm_arena *arena, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  if (text == NULL || is_clean(at)) {
    return text == NULL ? "" : text;
  }
  char *clean = pm__arena_take(arena, 3 * strlen(text) + 1, 1);
  if (clean == NULL) {
    return "";
  }
  for (char *out = clean; *at != 0;) {
    at += clean_one(at, &out);
  }
  return clean;
}

size_t pm__text_whole(const char *text, size_t size) {
  size_t lead = size;
  while (lead > 0 && size - lead < 4 && ((unsigned char)text[lead - 1] & 0xC0) == 0x80) lead--;
  if (lead == 0 || size - lead == 4) return size; /* no UTF-8 in any case */
  int tail = tail_size((unsigned char)text[lead - 1]);
  return tail > 0 && size - lead < (size_t)tail ? lead - 1 : size;
}
