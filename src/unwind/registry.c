/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/registry.h"

#include <stdlib.h>
#include <string.h>

#include "unwind/ehframe.h"

void pm__registry_begin(struct pm_registry *registry) {
  *registry = (struct pm_registry){0};
  registry->end = &registry->first;
}

struct pm_compiled *pm__compiled_hold(struct pm_compiled *compiled) {
  if (compiled) compiled->references++;
  return compiled;
}

void pm__compiled_release(struct pm_compiled *compiled) {
  if (compiled && !--compiled->references) pm__compiled_free(compiled);
}

static void free_loaded(struct pm_loaded *loaded) {
  pm__compiled_release(loaded->compiled);
  free((char *)(uintptr_t)loaded->object.path);
  free(loaded);
}

void pm__registry_free(struct pm_registry *registry) {
  for (struct pm_loaded *loaded = registry->first, *next; loaded; loaded = next) {
    next = loaded->next;
    free_loaded(loaded);
  }
  pm__registry_begin(registry);
}

void pm__registry_forget_gone(struct pm_registry *registry) {
  struct pm_loaded **link = &registry->first, *loaded;
  while ((loaded = *link) != NULL) {
    if (loaded->alive) {
      link = &loaded->next;
      continue;
    }
    *link = loaded->next;
    free_loaded(loaded);
  }
  registry->end = link;
}

/* As far as addresses tell. */
static bool same_place(const struct pm_image *a, const struct pm_image *b) {
  return a->bias == b->bias && a->text_lo == b->text_lo && a->text_hi == b->text_hi &&
         a->header == b->header && a->header_size == b->header_size;
}

static struct pm_loaded *find(const struct pm_registry *registry, const struct pm_image *image,
                              bool alive, const uint64_t *fingerprint) {
  for (struct pm_loaded *loaded = registry->first; loaded; loaded = loaded->next)
    if (loaded->alive == alive && same_place(&loaded->image, image) &&
        (!fingerprint || loaded->fingerprint == *fingerprint))
      return loaded;
  return NULL;
}

static struct pm_loaded *add(struct pm_registry *registry, const struct pm_image_list *list,
                             const struct pm_image *image, uint64_t fingerprint) {
  struct pm_loaded *loaded = calloc(1, sizeof *loaded);
  char *path = loaded ? pm__image_path(list, image) : NULL;
  if (!path) {
    free(loaded);
    return NULL;
  }
  struct pm_object *object = &loaded->object;
  object->id = ++registry->count;
  object->bias = image->bias;
  object->text_lo = image->text_lo;
  object->text_hi = image->text_hi;
  object->path = path;
  object->build_id_size =
      (uint8_t)pm__image_build_id(image, object->build_id, sizeof object->build_id);
  loaded->image = *image;
  loaded->fingerprint = fingerprint;
  *registry->end = loaded;
  registry->end = &loaded->next;
  return loaded;
}

/* An object that is not known to be there: one that came back, or a new one. */
static int take_up(struct pm_registry *registry, const struct pm_image_list *list,
                   const struct pm_image *image) {
  uint64_t fingerprint = pm__image_fingerprint(image);
  struct pm_loaded *loaded = find(registry, image, false, &fingerprint);
  if (!loaded) loaded = add(registry, list, image, fingerprint);
  if (!loaded) return -1;
  loaded->alive = loaded->seen = loaded->pending = true;
  return 0;
}

static bool lay_down_unseen(struct pm_registry *registry) {
  bool any = false;
  for (struct pm_loaded *loaded = registry->first; loaded; loaded = loaded->next) {
    if (!loaded->alive || loaded->seen) continue;
    pm__compiled_release(loaded->compiled);
    loaded->compiled = NULL;
    loaded->alive = loaded->pending = false;
    any = true;
  }
  return any;
}

static uint32_t count_alive(const struct pm_registry *registry) {
  uint32_t count = 0;
  for (struct pm_loaded *loaded = registry->first; loaded; loaded = loaded->next)
    count += loaded->alive;
  return count;
}

/* The record of an image that was there at the last scan and still is. */
static struct pm_loaded *still_there(const struct pm_registry *registry,
                                     const struct pm_image *image, bool unloaded) {
  uint64_t fingerprint = unloaded ? pm__image_fingerprint(image) : 0;
  return find(registry, image, true, unloaded ? &fingerprint : NULL);
}

int pm__registry_update(struct pm_registry *registry, const struct pm_image_list *list,
                        bool unloaded, struct pm_registry_change *change) {
  int error = 0;
  for (struct pm_loaded *loaded = registry->first; loaded; loaded = loaded->next)
    loaded->seen = false;
  for (uint32_t i = 0; i < list->count; i++) {
    struct pm_loaded *loaded = still_there(registry, &list->image[i], unloaded);
    if (loaded) loaded->seen = true;
  }
  change->came = false;
  change->gone = lay_down_unseen(registry);
  for (uint32_t i = 0; i < list->count; i++) {
    if (find(registry, &list->image[i], true, NULL)) continue;
    if (take_up(registry, list, &list->image[i])) error = -1;
    else change->came = true;
  }
  registry->alive = count_alive(registry);
  return error;
}

/*
 * The copies are the object's own only if it was there before and after they were
 * made, and never another one between: then its fingerprint is still the same.
 */
static bool copied_from(const struct pm_loaded *loaded, const struct pm_load_counts *before) {
  struct pm_load_counts after;
  if (pm__image_counts(&after) && after.subs == before->subs) return true;
  return pm__image_present(&loaded->image) &&
         pm__image_fingerprint(&loaded->image) == loaded->fingerprint;
}

bool pm__registry_compile(const struct pm_loaded *loaded, struct pm_compiled **compiled) {
  struct pm_eh_frame eh_frame;
  struct pm_load_counts before;
  *compiled = NULL;
  pm__image_counts(&before);
  if (!pm__image_present(&loaded->image)) return false;
  bool copied = pm__ehframe_copy(&loaded->image, &eh_frame);
  if (!copied_from(loaded, &before)) {
    pm__ehframe_free(&eh_frame);
    return false;
  }
  if (!copied) return true; /* no CFI: known text, no table */
  *compiled = pm__ehframe_compile(&eh_frame, loaded->image.text_lo, loaded->image.text_hi);
  pm__ehframe_free(&eh_frame);
  return *compiled != NULL;
}

void pm__registry_settle(struct pm_loaded *loaded, struct pm_compiled *compiled) {
  loaded->compiled = compiled;
  loaded->pending = false;
}
