/* SPDX-License-Identifier: Apache-2.0 */
/* An arena, and a hash table of its strings: thousands of codes share few files and modules. */
#include "python/intern.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 1024 };

struct pm_intern_entry {
  const char *string; /* NULL: free */
  uint32_t hash;
};

/* FNV-1a. */
static uint32_t hash_of(const char *string) {
  uint32_t hash = 2166136261u;
  for (; *string != '\0'; string++) hash = (hash ^ (unsigned char)*string) * 16777619u;
  return hash;
}

static struct pm_intern_entry *find(const struct pm_intern *interned, const char *string,
                                    uint32_t hash) {
  uint32_t at = hash & (interned->bucket_count - 1);
  while (
      interned->buckets[at].string != NULL &&
      (interned->buckets[at].hash != hash || strcmp(interned->buckets[at].string, string) != 0)) {
    at = (at + 1) & (interned->bucket_count - 1);
  }
  return &interned->buckets[at];
}

/* Keeps the table at most half full. */
static bool grow(struct pm_intern *interned) {
  if (interned->entry_count * 2 < interned->bucket_count) return true;
  struct pm_intern wider = *interned;
  wider.bucket_count = interned->bucket_count == 0 ? FIRST_BUCKETS : interned->bucket_count * 2;
  wider.buckets = calloc(wider.bucket_count, sizeof *wider.buckets);
  if (wider.buckets == NULL) return false;
  for (uint32_t i = 0; i < interned->bucket_count; i++) {
    struct pm_intern_entry entry = interned->buckets[i];
    if (entry.string != NULL) *find(&wider, entry.string, entry.hash) = entry;
  }
  free(interned->buckets);
  *interned = wider;
  return true;
}

const char *pm__intern_keep(struct pm_intern *interned, const char *string) {
  if (!grow(interned)) return NULL;
  uint32_t hash = hash_of(string);
  struct pm_intern_entry *entry = find(interned, string, hash);
  if (entry->string != NULL) return entry->string;
  size_t size = strlen(string) + 1;
  bool fits = size <= PM_INTERN_MAX && interned->bytes + size <= PM_INTERN_TOTAL;
  char *copy = fits ? pm__arena_take(&interned->arena, size, 1) : NULL;
  if (copy == NULL) return NULL;
  memcpy(copy, string, size);
  *entry = (struct pm_intern_entry){copy, hash};
  interned->entry_count++;
  interned->bytes += size;
  return copy;
}

void pm__intern_free(struct pm_intern *interned) {
  pm__arena_free(&interned->arena);
  free(interned->buckets);
  *interned = (struct pm_intern){0};
}
