/* SPDX-License-Identifier: Apache-2.0 */
/* From one record of a thread's ring to one more sample in its call tree. */
#include "profile/merge.h"
#include "profile/profile.h"
#include "python/python.h"
#include "unwind/unwind.h"

/* Does the object hold this very function? Then it is this library. */
static bool is_own_object(const struct pm_object *object) {
  uintptr_t here = (uintptr_t)&pm__profile_add_record;
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
  if (at.has_function) {
    native.role = pm__python_role((uintptr_t)(at.function_rva + at.object->bias));
  }
  return native;
}

static struct pm_merge_python resolve_python(struct pm_profile *profile,
                                             const struct pm_shadow_frame *frame) {
  const struct pm_code *code = pm__code_info(frame->code);
  if (code == NULL) profile->unknown_ids++;
  return (struct pm_merge_python){
      .code = frame->code,
      .mark = frame->mark,
      .hidden = code != NULL && code->category == PM_CATEGORY_OWN,
  };
}

static void count_sample(struct pm_profile *profile, const struct pm_record *record,
                         const struct pm_merge_output *merged) {
  profile->samples++;
  profile->attributed += merged->python > 0;
  profile->native_only += merged->python == 0;
  profile->boundary_misses += merged->misses > 0;
  profile->truncated_stacks += merged->truncated > 0;
  profile->complete += (record->flags & PM_WALK_ROOT) != 0;
  profile->guessed += (record->flags & PM_WALK_GUESSED) != 0;
  if (merged->own) profile->own_ns += record->weight;
  if (merged->truncated > profile->truncated_most) profile->truncated_most = merged->truncated;
}

/* In a subinterpreter no event of ours is raised: its frames are the interpreter's, unnamed. */
static void count_unfollowed(struct pm_profile *profile, struct pm_profile_thread *thread,
                             uint64_t weight) {
  if (!pm__python_had_subinterpreters()) return;
  profile->unfollowed++;
  thread->unfollowed_ns += weight;
}

static void book(struct pm_profile *profile, uint32_t root, const struct pm_merge_output *merged,
                 uint64_t weight) {
  uint32_t node = root;
  for (uint32_t i = 0; i < merged->count && node != PM_TREE_NONE; i++) {
    node = pm__tree_child(&profile->tree, node, merged->frames[i]);
  }
  bool booked = node != PM_TREE_NONE &&
                pm__tree_book(&profile->tree, node, profile->window_count - 1, weight);
  if (!booked) profile->dropped++;
}

void pm__profile_add_record(struct pm_profile *profile, uint32_t index,
                            const struct pm_record *record) {
  struct pm_merge_native native[PM_NATIVE_FRAMES];
  struct pm_merge_python python[PM_PYTHON_FRAMES];
  for (uint32_t i = 0; i < record->native_count; i++) native[i] = resolve_native(record, i);
  for (uint32_t i = 0; i < record->python_count; i++) {
    python[i] = resolve_python(profile, &pm__record_frames(record)[i]);
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
  struct pm_merge_output merged;
  pm__merge(&input, &merged);
  struct pm_profile_thread *thread = &profile->threads[index];
  book(profile, thread->root, &merged, record->weight);
  thread->samples++;
  thread->sampled_ns += record->weight;
  profile->sampled_ns += record->weight;
  count_sample(profile, record, &merged);
  if (merged.bare) count_unfollowed(profile, thread, record->weight);
}
