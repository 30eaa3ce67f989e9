/* SPDX-License-Identifier: Apache-2.0 */
/* Push and pop of a shadow stack by its owner; signal/shadow.h has the layout and the ordering. */
#ifndef PM_PYTHON_STACK_H
#define PM_PYTHON_STACK_H

#include <string.h>

#include "base/base.h"
#include "signal/shadow.h"

/* The owner is the only writer, so a load and a store do; a locked add would cost more. */
static inline void pm__stack_count(_Atomic uint64_t *counter) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                        memory_order_relaxed);
}

static inline uint32_t pm__stack_depth(const struct pm_shadow *shadow) {
  return atomic_load_explicit(&shadow->depth, memory_order_relaxed);
}

static inline void pm__stack_set_depth(struct pm_shadow *shadow, uint32_t depth) {
  atomic_signal_fence(memory_order_release);
  atomic_store_explicit(&shadow->depth, depth, memory_order_relaxed);
}

/* Below PM_PYTHON_FRAMES slot and depth are the same, for PM_SHADOW_ROOT is a multiple of TAIL. */
_Static_assert(PM_SHADOW_ROOT % PM_SHADOW_TAIL == 0, "the first turn of the ring must not jump");

static inline uint32_t pm__stack_slot(uint32_t depth) {
  return depth < PM_PYTHON_FRAMES ? depth : PM_SHADOW_ROOT + depth % PM_SHADOW_TAIL;
}

/* Is the frame at depth `at`, which the stack reaches, still in its slot? */
static inline bool pm__stack_holds(const struct pm_shadow *shadow, uint32_t at) {
  return at < PM_SHADOW_ROOT || at >= shadow->tail_low;
}

/* Takes the oldest deep frame out before its slot is written over. */
static inline void pm__stack_make_room(struct pm_shadow *shadow, uint32_t depth) {
  uint32_t oldest = depth - PM_SHADOW_TAIL + 1;
  if (shadow->tail_low < oldest) shadow->tail_low = oldest;
  pm__stack_count(&shadow->overflows);
  atomic_signal_fence(memory_order_release);
}

/* The stack may now reach `depth` frames. */
static inline void pm__stack_note_depth(struct pm_shadow *shadow, uint32_t depth) {
  if (depth <= shadow->depth_max) return;
  shadow->depth_max = depth;
  shadow->innermost_easy = (depth < PM_PYTHON_FRAMES ? depth : PM_PYTHON_FRAMES) - 1;
}

/* Onto the innermost frame, which is in slot `top`, below `innermost_easy`. */
static inline void pm__stack_push_easily(struct pm_shadow *shadow, uint32_t top, uint32_t code,
                                         uint64_t mark) {
  struct pm_shadow_frame *frame = &shadow->frames[top] + 1;
  uint64_t code_without_flags = code; /* in one store */
  memcpy(frame, &code_without_flags, sizeof code_without_flags);
  frame->mark = mark;
  pm__stack_set_depth(shadow, top + 2);
}

/* Returns the slot the frame went to. */
static inline uint32_t pm__stack_push(struct pm_shadow *shadow, struct pm_shadow_frame frame) {
  uint32_t depth = pm__stack_depth(shadow);
  uint32_t slot = depth;
  if (PM_UNLIKELY(depth >= PM_PYTHON_FRAMES)) {
    pm__stack_make_room(shadow, depth);
    slot = pm__stack_slot(depth);
  }
  shadow->frames[slot] = frame;
  pm__stack_note_depth(shadow, depth + 1);
  pm__stack_set_depth(shadow, depth + 1);
  return slot;
}

/* The stack must not be empty. */
static inline void pm__stack_pop(struct pm_shadow *shadow) {
  uint32_t depth = pm__stack_depth(shadow) - 1;
  pm__stack_set_depth(shadow, depth);
  if (PM_UNLIKELY(depth < shadow->tail_low && depth >= PM_SHADOW_ROOT)) {
    atomic_signal_fence(memory_order_release);
    shadow->tail_low = depth;
  }
}

/* Deep frames stand on the stack, but none of them is in its slot: time to refill the ring. */
static inline bool pm__stack_tail_is_lost(const struct pm_shadow *shadow) {
  uint32_t depth = pm__stack_depth(shadow);
  return depth > PM_SHADOW_ROOT && shadow->tail_low >= depth;
}

/* Around a rewrite of several slots. Its stores are ordered for readers on other threads too. */
static inline void pm__stack_rewrite_begin(struct pm_shadow *shadow) {
  uint32_t sequence = atomic_load_explicit(&shadow->sequence, memory_order_relaxed);
  atomic_store_explicit(&shadow->sequence, sequence + 1, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
}

static inline void pm__stack_rewrite_end(struct pm_shadow *shadow) {
  uint32_t sequence = atomic_load_explicit(&shadow->sequence, memory_order_relaxed);
  atomic_store_explicit(&shadow->sequence, sequence + 1, memory_order_release);
}

/* Inside a rewrite: the stack now reaches `depth` frames, the deepest of them in the ring. */
static inline void pm__stack_rewrite_depth(struct pm_shadow *shadow, uint32_t depth) {
  bool cut = depth > PM_PYTHON_FRAMES;
  shadow->tail_low = cut ? depth - PM_SHADOW_TAIL : PM_SHADOW_ROOT;
  pm__stack_note_depth(shadow, depth);
  pm__stack_set_depth(shadow, depth);
}

#endif /* PM_PYTHON_STACK_H */
