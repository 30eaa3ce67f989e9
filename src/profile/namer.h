/* SPDX-License-Identifier: Apache-2.0 */
/* Gives frame keys their names, and equal names one frame of the view. */
#ifndef PM_PROFILE_NAMER_H
#define PM_PROFILE_NAMER_H

#include "base/arena.h"
#include "profile/frame.h"
#include "profile/view.h"
#include "symbol/symbol.h"
#include "unwind/unwind.h"

/* A native key and its frame; UINT32_MAX: a free slot. */
struct pm_named_key {
  struct pm_frame_key key;
  uint32_t frame;
};

/* Names are kept in a symbolizer, a shared one or the namer's own. */
struct pm_namer {
  struct pm_arena *arena; /* the view's: all strings live there */
  struct pm_symbolizer *symbolizer;
  bool owns_symbolizer;
  uint32_t truncated_most;
  struct pm_view_frame *frames;
  uint32_t frame_count, frame_room;
  uint32_t *by_name; /* open addressing: frame index, or UINT32_MAX */
  uint32_t slot_count;
  struct pm_named_key *by_key; /* open addressing: native keys met so far */
  uint32_t key_count, key_slots;
  uint32_t *by_code; /* code id -> frame index, or UINT32_MAX */
  uint32_t code_count;
  struct pm_view_object *objects;
  uint32_t object_count, object_room;
  const struct pm_object **seen; /* by object id */
  uint32_t *object_index;        /* by object id: index into objects, or UINT32_MAX */
  uint32_t seen_count;
  uint32_t interpreter; /* id of the object that holds CPython; 0: none */
};

bool pm__namer_init(struct pm_namer *namer, struct pm_arena *arena, struct pm_symbolizer *shared);
/* Frees the look-ups; frames, objects and strings stay for the view. */
void pm__namer_free(struct pm_namer *namer);
/* Does the object at `path` belong to the C library, glibc's or musl's, or the loader? */
bool pm__namer_is_c_library(const char *path);
/* The view frame of a key; UINT32_MAX when memory is short. */
uint32_t pm__namer_frame(struct pm_namer *namer, struct pm_frame_key key);
/*
 * Adds the codes that were called but never sampled, and every code's calls since `before` was
 * read. They were counted in a `share` of the CPU: below 1 the calls are estimates.
 */
void pm__namer_add_calls(struct pm_namer *namer, const uint64_t *before, uint32_t before_count,
                         double share);

#endif /* PM_PROFILE_NAMER_H */
