/* SPDX-License-Identifier: Apache-2.0 */
/* From one record of a thread's ring to one more sample in its call tree. */
#include <string.h>

#include "profile/namer.h"
#include "profile/profile.h"
#include "profile/prune.h"
#include "python/python.h"
#include "unwind/unwind.h"

/* Does the object hold this very function? Then it is this library. */
static bool is_own_object(const struct pm_object *object) {
  uintptr_t here = (uintptr_t)&pm__profile_merge;
  return here >= object->text_lo && here < object->text_hi;
}

/*
 * A return address is looked up one byte back, in the call. The interrupted pc
 * is looked up as it is; so is the pc above a signal frame, which the walk gives
 * as an address inside its function either way.
 */
static struct pm_merge_native resolve_native(const struct pm_record *record, uint32_t i) {
  uint64_t pc = pm__record_pcs(record)[i];
  struct pm_location at = pm__unwind_locate((uintptr_t)(i == 0 ? pc : pc - 1));
  struct pm_merge_native native = {
      .key = {.kind = PM_KEY_NATIVE}, /* id 0: code in no object, made at run time */
      .cfa = pm__record_cfas(record)[i],
  };
  if (at.object == NULL) return native;
  native.key.id = at.object->id;
  native.key.value = at.function_rva;
  native.own = is_own_object(at.object);
  native.c_library = pm__namer_is_c_library(at.object->path);
  if (at.has_function) {
    native.role = pm__python_role((uintptr_t)(at.function_rva + at.object->bias));
  }
  return native;
}

/* The code that is in no file: not what the package's users have it call. */
static bool is_internal(const struct pm_code *code) {
  return code->category == PM_CATEGORY_OWN && strcmp(code->file, "<pyrometer>") == 0;
}

static struct pm_merge_python resolve_python(const struct pm_shadow_frame *frame,
                                             uint32_t *unknown) {
  const struct pm_code *code = pm__code_info(frame->code);
  if (code == NULL) (*unknown)++;
  return (struct pm_merge_python){
      .code = frame->code,
      .mark = frame->mark,
      .hidden = code != NULL && code->category == PM_CATEGORY_OWN,
      .own = code != NULL && is_internal(code),
  };
}

static uint64_t mix(uint64_t hash, struct pm_frame_key key) {
  hash = (hash ^ key.id) * UINT64_C(0x9E3779B97F4A7C15);
  hash = (hash ^ key.value) * UINT64_C(0xD6E8FEB86659FD93);
  return hash ^ hash >> 29;
}

static void hash_path(const struct pm_merge_native *native, uint32_t count,
                      struct pm_merged *merged) {
  enum {
    CALLED = 4
  }; /* what a C function does first tells which one it is; then it does this and that */
  uint32_t interpreter = 0, called = 0;
  uint64_t path = 0;
  merged->base = merged->call = 0;
  merged->plain = merged->runtime = false;
  for (uint32_t i = count; i-- > 0;) {
    path = mix(path, native[i].key);
    called++;
    if (native[i].role == PM_ROLE_INTERPRETER) {
      merged->base = path;
      merged->plain = merged->runtime = true;
      interpreter = native[i].key.id;
      called = 0;
    }
    bool runtime = native[i].key.id == interpreter || native[i].c_library;
    merged->runtime = merged->runtime && runtime;
    merged->plain = merged->plain && runtime && called < CALLED;
    if (called <= CALLED) merged->call = path;
  }
  merged->path = path;
}

void pm__profile_merge(const struct pm_record *record, struct pm_merged *merged) {
  struct pm_merge_native native[PM_NATIVE_FRAMES];
  struct pm_merge_python python[PM_PYTHON_FRAMES];
  merged->flags = record->flags;
  merged->unknown_ids = 0;
  merged->estimated = false;
  for (uint32_t i = 0; i < record->native_count; i++) native[i] = resolve_native(record, i);
  for (uint32_t i = 0; i < record->python_count; i++) {
    python[i] = resolve_python(&pm__record_frames(record)[i], &merged->unknown_ids);
  }
  const struct pm_merge_input input = {
      .native = native,
      .native_count = record->native_count,
      .native_split = record->native_split,
      .native_skipped = record->native_skipped,
      .native_complete = (record->flags & PM_WALK_ROOT) != 0,
      .python = python,
      .python_count = record->python_count,
      .python_split = record->python_split,
      .python_skipped = record->python_skipped,
  };
  pm__merge(&input, &merged->stack);
  hash_path(native, record->native_count, merged);
}

static void count_sample(struct pm_profile *profile, const struct pm_merged *merged, uint64_t ns) {
  const struct pm_merge_output *stack = &merged->stack;
  profile->samples++;
  profile->attributed += stack->python > 0;
  profile->estimated += merged->estimated;
  profile->seen += stack->python > 0 && !merged->estimated && !stack->own;
  profile->native_only += stack->python == 0;
  profile->boundary_misses += stack->misses > 0;
  profile->truncated_stacks += stack->truncated > 0;
  profile->unknown_ids += merged->unknown_ids;
  profile->complete += (merged->flags & PM_WALK_ROOT) != 0;
  profile->guessed += (merged->flags & PM_WALK_GUESSED) != 0;
  if (stack->own) profile->own_ns += ns;
  if (stack->truncated > profile->truncated_most) profile->truncated_most = stack->truncated;
}

/* The tree's roots keep their order, which is the threads'. */
static void find_roots(struct pm_profile *profile) {
  uint32_t thread = 0;
  for (uint32_t i = 0; i < profile->tree.count; i++) {
    if (profile->tree.nodes[i].parent == PM_TREE_NONE) profile->threads[thread++].root = i;
  }
}

/* All indices of nodes may change. */
static bool make_room(struct pm_profile *profile, uint32_t frames) {
  if (!pm__tree_is_full(&profile->tree, frames)) return true;
  if (!pm__prune_tree(&profile->tree)) return false;
  find_roots(profile);
  return true;
}

static bool add_to_tree(struct pm_profile *profile, const struct pm_profile_thread *thread,
                        const struct pm_merge_output *stack, uint64_t ns) {
  if (!make_room(profile, stack->count)) return false;
  uint32_t node = thread->root;
  for (uint32_t i = 0; i < stack->count && node != PM_TREE_NONE; i++) {
    node = pm__tree_child(&profile->tree, node, stack->frames[i]);
  }
  return node != PM_TREE_NONE && pm__tree_book(&profile->tree, node, profile->window_count - 1, ns);
}

/* In a subinterpreter no event of ours is raised: its frames are the interpreter's, unnamed. */
static void count_unfollowed(struct pm_profile *profile, struct pm_profile_thread *thread,
                             uint64_t ns) {
  if (!pm__python_had_subinterpreters()) return;
  profile->unfollowed++;
  thread->unfollowed_ns += ns;
}

void pm__profile_book(struct pm_profile *profile, uint32_t index, const struct pm_merged *merged,
                      uint64_t ns) {
  struct pm_profile_thread *thread = &profile->threads[index];
  if (!add_to_tree(profile, thread, &merged->stack, ns)) profile->dropped++;
  thread->samples++;
  thread->sampled_ns += ns;
  profile->sampled_ns += ns;
  count_sample(profile, merged, ns);
  if (merged->stack.bare) count_unfollowed(profile, thread, ns);
}
