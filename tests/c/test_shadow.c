/* SPDX-License-Identifier: Apache-2.0 */
/* The shadow stack: push and pop (python/stack.h) against what a handler copies. */
#include <stdlib.h>

#include "check.h"
#include "python/stack.h"
#include "signal/shadow.h"

enum { SESSION = 7 };

/* The frame at depth d has code d + 1, so a copy shows where each of its frames came from. */
static struct pm_shadow_frame frame_at(uint32_t depth) {
  return (struct pm_shadow_frame){.code = depth + 1, .flags = 0, .mark = 0x7000 + depth * 16};
}

static struct pm_shadow *make_shadow(void) {
  struct pm_shadow *shadow = calloc(1, sizeof *shadow);
  pm__stack_rewrite_begin(shadow);
  pm__stack_rewrite_depth(shadow, 0);
  atomic_store(&shadow->seeded, SESSION);
  pm__stack_rewrite_end(shadow);
  return shadow;
}

static void go_to(struct pm_shadow *shadow, uint32_t depth) {
  while (pm__stack_depth(shadow) < depth) pm__stack_push(shadow, frame_at(pm__stack_depth(shadow)));
  while (pm__stack_depth(shadow) > depth) pm__stack_pop(shadow);
}

struct copy {
  struct pm_shadow_frame frames[PM_PYTHON_FRAMES];
  uint32_t count, split, skipped;
  bool taken;
};

static struct copy copy_of(const struct pm_shadow *shadow) {
  struct copy copy;
  copy.taken = pm__shadow_copy(shadow, copy.frames, &copy.count, &copy.split, &copy.skipped);
  return copy;
}

/* Is every frame of the copy the one that belongs where the copy says it stood? */
static bool is_true(const struct copy *copy) {
  for (uint32_t i = 0; i < copy->count; i++) {
    struct pm_shadow_frame want = frame_at(i < copy->split ? i : i + copy->skipped);
    if (copy->frames[i].code != want.code || copy->frames[i].mark != want.mark) return false;
  }
  return true;
}

static void expect(const struct pm_shadow *shadow, uint32_t count, uint32_t skipped) {
  struct copy copy = copy_of(shadow);
  CHECK(copy.taken);
  CHECK_EQ_INT(copy.count, count);
  CHECK_EQ_INT(copy.skipped, skipped);
  CHECK_EQ_INT(copy.count + copy.skipped, pm__stack_depth(shadow));
  CHECK(is_true(&copy));
}

static void test_ways_down(void) {
  struct pm_shadow *shadow = make_shadow();
  expect(shadow, 0, 0);
  go_to(shadow, 10);
  expect(shadow, 10, 0);
  go_to(shadow, 192);
  expect(shadow, 192, 0);
  go_to(shadow, 193);
  expect(shadow, 193, 0);
  go_to(shadow, 256);
  expect(shadow, 256, 0);
  CHECK_EQ_INT(shadow->overflows, 0);
  go_to(shadow, 257);
  expect(shadow, 256, 1);
  CHECK_EQ_INT(shadow->overflows, 1);
  go_to(shadow, 300);
  expect(shadow, 256, 44);
  go_to(shadow, 1000);
  expect(shadow, 256, 744);
  CHECK_EQ_INT(shadow->overflows, 744);
  CHECK_EQ_INT(shadow->depth_max, 1000);
  free(shadow);
}

/* On the way back the ring holds ever fewer frames, and never one that is not there. */
static void test_way_back(void) {
  struct pm_shadow *shadow = make_shadow();
  go_to(shadow, 1000);
  go_to(shadow, 990);
  expect(shadow, 192 + 54, 744);
  go_to(shadow, 937);
  expect(shadow, 192 + 1, 744);
  CHECK(!pm__stack_tail_is_lost(shadow));
  go_to(shadow, 936);
  expect(shadow, 192, 744);
  CHECK(pm__stack_tail_is_lost(shadow));
  go_to(shadow, 500);
  expect(shadow, 192, 308);
  CHECK(!pm__stack_holds(shadow, 499));
  go_to(shadow, 510);
  expect(shadow, 202, 308);
  CHECK(pm__stack_holds(shadow, 509));
  CHECK(!pm__stack_holds(shadow, 499));
  go_to(shadow, 192);
  expect(shadow, 192, 0);
  CHECK(!pm__stack_tail_is_lost(shadow));
  go_to(shadow, 5);
  expect(shadow, 5, 0);
  go_to(shadow, 256);
  expect(shadow, 256, 0);
  go_to(shadow, 0);
  expect(shadow, 0, 0);
  free(shadow);
}

/* The same against a model that remembers which depths a slot has lost. */
static void test_random_walk(void) {
  struct pm_shadow *shadow = make_shadow();
  uint32_t low = PM_SHADOW_ROOT, random = 1;
  bool good = true;
  for (int step = 0; step < 3000; step++) {
    random = random * 1664525u + 1013904223u;
    uint32_t target = (random >> 16) % 700, depth = pm__stack_depth(shadow);
    go_to(shadow, target);
    if (target > depth && target > PM_SHADOW_TAIL && low < target - PM_SHADOW_TAIL &&
        target > PM_PYTHON_FRAMES) {
      low = target - PM_SHADOW_TAIL;
    }
    if (target < low) low = target > PM_SHADOW_ROOT ? target : PM_SHADOW_ROOT;
    struct copy copy = copy_of(shadow);
    good = good && copy.taken && is_true(&copy) && copy.count + copy.skipped == target &&
           copy.skipped == (target > PM_SHADOW_ROOT ? low - PM_SHADOW_ROOT : 0);
  }
  CHECK(good);
  free(shadow);
}

/* A handler may strike between any two stores of a push or a pop. */
static void test_interrupted(void) {
  struct pm_shadow *shadow = make_shadow();
  go_to(shadow, 300);
  pm__stack_make_room(shadow, 300); /* a push that has not written its slot yet */
  struct copy copy = copy_of(shadow);
  CHECK_EQ_INT(copy.count, 255);
  CHECK(is_true(&copy));
  shadow->frames[pm__stack_slot(300)] = frame_at(300); /* nor its depth */
  copy = copy_of(shadow);
  CHECK_EQ_INT(copy.count, 255);
  CHECK(is_true(&copy));
  pm__stack_set_depth(shadow, 301);
  expect(shadow, 256, 45);

  go_to(shadow, 237); /* of the deep frames none is left */
  expect(shadow, 192, 45);
  pm__stack_set_depth(shadow, 236); /* a pop that has not lowered tail_low yet */
  expect(shadow, 192, 44);
  free(shadow);
}

static void test_rewrites(void) {
  struct pm_shadow *shadow = make_shadow();
  go_to(shadow, 20);
  pm__stack_rewrite_begin(shadow);
  CHECK(!copy_of(shadow).taken);
  CHECK_EQ_INT(copy_of(shadow).count, 0);
  for (uint32_t d = 0; d < PM_SHADOW_ROOT; d++) shadow->frames[d] = frame_at(d);
  for (uint32_t d = 436; d < 500; d++) shadow->frames[pm__stack_slot(d)] = frame_at(d);
  pm__stack_rewrite_depth(shadow, 500);
  pm__stack_rewrite_end(shadow);
  expect(shadow, 256, 244);
  go_to(shadow, 510);
  expect(shadow, 256, 254);
  free(shadow);
}

static void test_sessions(void) {
  struct pm_shadow *shadow = make_shadow();
  go_to(shadow, 20);
  atomic_store(&pm__shadow_session, SESSION + 1); /* the thread has not been seen in it */
  CHECK(copy_of(shadow).taken);
  CHECK_EQ_INT(copy_of(shadow).count, 0);
  atomic_store(&pm__shadow_session, 0);
  CHECK_EQ_INT(copy_of(shadow).count, 0);
  atomic_store(&pm__shadow_session, SESSION);
  CHECK_EQ_INT(copy_of(shadow).count, 20);
  free(shadow);
}

static void test_untouched(void) {
  struct pm_shadow *shadow = calloc(1, sizeof *shadow);
  CHECK(copy_of(shadow).taken);
  CHECK_EQ_INT(copy_of(shadow).count, 0);
  free(shadow);
}

int main(void) {
  atomic_store(&pm__shadow_session, SESSION);
  test_ways_down();
  test_way_back();
  test_random_walk();
  test_interrupted();
  test_rewrites();
  test_sessions();
  test_untouched();
  return check_report();
}
