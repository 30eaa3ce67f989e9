/* SPDX-License-Identifier: Apache-2.0 */
#include "python/entries.h"

#include <stdlib.h>
#include <string.h>

static uint32_t places_of(uint32_t mask) { return mask + PM_ENTRIES_PROBES; }

bool pm__entries_make(struct pm_entries *entries) {
  entries->mask = PM_ENTRIES_FIRST - 1;
  entries->used = 0;
  entries->places = calloc(places_of(entries->mask), sizeof *entries->places);
  return entries->places != NULL;
}

void pm__entries_free(struct pm_entries *entries) { free(entries->places); }

void pm__entries_clear(struct pm_entries *entries) {
  memset(entries->places, 0, places_of(entries->mask) * sizeof *entries->places);
  entries->used = 0;
}

struct pm_code_entry *pm__entries_probe(struct pm_code_entry *first, const void *code) {
  for (struct pm_code_entry *place = first; place < first + PM_ENTRIES_PROBES; place++) {
    if (place->code == code) return place;
  }
  return NULL;
}

/* Where all its places are taken, codes differ in whose they take. */
static struct pm_code_entry *place_for(const struct pm_entries *entries, const void *code) {
  struct pm_code_entry *first = pm__entries_first(entries, code);
  struct pm_code_entry *empty = pm__entries_probe(first, NULL);
  return empty != NULL ? empty : first + ((uintptr_t)code >> 9) % PM_ENTRIES_PROBES;
}

/* Without memory it stays as it is. */
static void grow(struct pm_entries *entries) {
  struct pm_entries wider = {.mask = entries->mask * 2 + 1, .used = entries->used};
  wider.places = calloc(places_of(wider.mask), sizeof *wider.places);
  if (wider.places == NULL) return;
  for (uint32_t i = 0; i < places_of(entries->mask); i++) {
    const struct pm_code_entry *entry = &entries->places[i];
    if (entry->code != NULL) *place_for(&wider, entry->code) = *entry;
  }
  free(entries->places);
  *entries = wider;
}

struct pm_code_entry *pm__entries_add(struct pm_entries *entries, const void *code) {
  bool crowded = entries->used * PM_ENTRIES_SPARE >= entries->mask;
  if (crowded && entries->mask + 1 < PM_ENTRIES_MAX) grow(entries);
  struct pm_code_entry *entry = place_for(entries, code);
  entries->used++;
  *entry = (struct pm_code_entry){.code = code};
  return entry;
}
