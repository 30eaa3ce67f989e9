/* SPDX-License-Identifier: Apache-2.0 */
/* strings.c: pprof's table of texts; see strings.h. */
#include "export/strings.h"

#include <string.h>

#include "base/text.h"

/* FNV-1a. */
static uint32_t hash_of(const char *text) {
  uint32_t hash = 2166136261u;
  for (; *text != 0; text++) {
    hash = (hash ^ (unsigned char)*text) * 16777619u;
  }
  return hash;
}

static uint32_t slot_of(const struct pm_strings *strings, const char *text) {
  uint32_t slot = hash_of(text) & strings->mask;
  while (strings->slots[slot] != 0 && strcmp(strings->texts[strings->slots[slot] - 1], text) != 0) {
    slot = (slot + 1) & strings->mask;
  }
  return slot;
}

/* Twice the room. The old arrays stay in the arena: together they are as large as the new. */
static bool grow(struct pm_strings *strings) {
  uint32_t room = strings->room == 0 ? 256 : 2 * strings->room;
  const char **texts = pm__arena_take(strings->arena, room, sizeof(*texts));
  uint32_t *slots = pm__arena_take(strings->arena, 2 * (size_t)room, sizeof(*slots));
  if (texts == NULL || slots == NULL) {
    return false;
  }
  if (strings->count > 0) {
    memcpy(texts, strings->texts, strings->count * sizeof(*texts));
  }
  *strings = (struct pm_strings){strings->arena, texts, strings->count, room, slots, 2 * room - 1};
  for (uint32_t i = 0; i < strings->count; i++) {
    slots[slot_of(strings, texts[i])] = i + 1;
  }
  return true;
}

static int64_t add(struct pm_strings *strings, const char *text) {
  if (strings->count == strings->room && !grow(strings)) {
    return 0;
  }
  uint32_t slot = slot_of(strings, text);
  if (strings->slots[slot] == 0) {
    strings->texts[strings->count++] = text;
    strings->slots[slot] = strings->count;
  }
  return strings->slots[slot] - 1;
}

int64_t pm__strings_index(struct pm_strings *strings, const char *text) {
  if (strings->count == 0) {
    add(strings, "");
  }
  return add(strings, pm__text_clean(strings->arena, text));
}
