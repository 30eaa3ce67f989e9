/* SPDX-License-Identifier: Apache-2.0 */
/* The walk: steps until the root, and keeps both ends of a stack that is too deep. */
#include "signal/walk.h"

#include "signal/step.h"

/* The first half stays where it is; the second half is a ring of the newest frames. */
static void keep(struct pm_walk *walk, uint32_t index, uintptr_t pc, uintptr_t cfa) {
  uint32_t half = walk->capacity / 2;
  uint32_t slot = index < walk->capacity ? index : half + (index - half) % half;
  walk->pc[slot] = pc;
  walk->cfa[slot] = cfa;
}

static void reverse(uint64_t *array, uint32_t from, uint32_t to) {
  while (from + 1 < to) {
    uint64_t swapped = array[from];
    array[from++] = array[--to];
    array[to] = swapped;
  }
}

/* Turns the ring [from, to) so that its oldest entry, at `oldest`, comes first. */
static void rotate(uint64_t *array, uint32_t from, uint32_t oldest, uint32_t to) {
  reverse(array, from, oldest);
  reverse(array, oldest, to);
  reverse(array, from, to);
}

static void finish(struct pm_walk *walk, uint32_t frames) {
  walk->count = walk->split = frames;
  walk->skipped = 0;
  if (frames <= walk->capacity) return;
  uint32_t half = walk->capacity / 2;
  uint32_t oldest = half + (frames - half) % half;
  rotate(walk->pc, half, oldest, walk->capacity);
  rotate(walk->cfa, half, oldest, walk->capacity);
  walk->count = walk->capacity;
  walk->split = half;
  walk->skipped = frames - walk->capacity;
}

static uint32_t flag_of(enum pm_step step) {
  switch (step) {
  case PM_STEP_CALLER: return PM_WALK_LIMIT;
  case PM_STEP_ROOT: return PM_WALK_ROOT;
  case PM_STEP_NO_RULE: return PM_WALK_NO_RULE;
  case PM_STEP_BAD:
  case PM_STEP_LOST: break;
  }
  return PM_WALK_BAD_CFA;
}

void pm__walk_native(const struct pm_tables *tables, struct pm_pc_cache *cache,
                     struct pm_registers registers, struct pm_stack stack, struct pm_walk *walk) {
  struct pm_cursor cursor;
  pm__step_begin(&cursor, tables, cache, registers, stack);
  uint32_t frames = 0;
  enum pm_step step = PM_STEP_CALLER;
  walk->flags = 0;
  while (step == PM_STEP_CALLER && frames < PM_WALK_STEPS_MAX) {
    uintptr_t cfa, pc = cursor.registers.pc;
    step = pm__step_next(&cursor, &cfa);
    if (step == PM_STEP_LOST) break;
    if (cursor.guessed && step == PM_STEP_CALLER) walk->flags |= PM_WALK_GUESSED;
    keep(walk, frames++, pc, cfa);
  }
  walk->flags |= flag_of(step);
  finish(walk, frames);
}
