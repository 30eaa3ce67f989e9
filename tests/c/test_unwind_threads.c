/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables' own locks, with no signal about: one thread loads and unloads a library,
 * one refreshes, others walk their stacks and look addresses up. See also
 * test_unwind_storm.c, where signals walk.
 */
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"
#include "unwind/unwind.h"

enum { ROUNDS = 150, WALKERS = 3 };

static _Atomic bool over;
static _Atomic(const struct pm_tables *) hazards[WALKERS];

static bool in_use(const struct pm_tables *tables) {
  for (int i = 0; i < WALKERS; i++)
    if (atomic_load(&hazards[i]) == tables) return true;
  return false;
}

static void *load_and_unload(void *argument) {
  for (int i = 0; i < ROUNDS; i++) {
    void *handle = dlopen("libcrypt.so.1", RTLD_NOW);
    if (handle) dlclose(handle);
  }
  atomic_store(&over, true);
  return argument;
}

static void *refresh(void *argument) {
  while (!atomic_load(&over)) {
    pm__unwind_refresh();
    (void)pm__unwind_statistics();
  }
  return argument;
}

/* As a handler does, without being one. */
static bool look_up(int index, uintptr_t pc) {
  const struct pm_tables *tables = pm__tables_acquire(&hazards[index]);
  const struct pm_span *span = pm__tables_span(tables, pc);
  bool found = span && pm__rule_kind(pm__table_rule(span, pc)) != PM_RULE_NONE;
  pm__tables_release(&hazards[index]);
  return found;
}

static void *walk(void *argument) {
  uintptr_t wrong = 0, own = (uintptr_t)&look_up + 1;
  while (!atomic_load(&over)) {
    uint64_t pc[PM_NATIVE_FRAMES], cfa[PM_NATIVE_FRAMES];
    struct pm_walk here = {.pc = pc, .cfa = cfa, .capacity = PM_NATIVE_FRAMES};
    pm__unwind_here(&here);
    struct pm_location at = pm__unwind_locate(own);
    wrong += !(here.flags & PM_WALK_ROOT) || !at.has_function;
    wrong += !look_up((int)(uintptr_t)argument, own);
  }
  return (void *)wrong;
}

static void test_all_at_once(void) {
  pthread_t loader, refresher, walkers[WALKERS];
  void *wrong = NULL;
  uintptr_t first[] = {(uintptr_t)&look_up, (uintptr_t)&pthread_create};
  CHECK_EQ_INT(pm__unwind_start(first, 2), 0);
  pm__unwind_set_in_use(in_use);
  pm__unwind_refresh(); /* the thread library's start, where every walk ends */
  pthread_create(&loader, NULL, load_and_unload, NULL);
  pthread_create(&refresher, NULL, refresh, NULL);
  for (uintptr_t i = 0; i < WALKERS; i++) pthread_create(&walkers[i], NULL, walk, (void *)i);
  pthread_join(loader, NULL);
  pthread_join(refresher, NULL);
  for (int i = 0; i < WALKERS; i++) {
    pthread_join(walkers[i], &wrong);
    CHECK_EQ_INT((uintptr_t)wrong, 0);
  }
}

static void count_object(void *context, const struct pm_object *object) {
  (void)object;
  (*(uint32_t *)context)++;
}

static uint32_t count_objects(void) {
  uint32_t count = 0;
  pm__unwind_each_object(count_object, &count);
  return count;
}

/* The next session finds the tables built, and nothing of objects that are gone. */
static void test_tables_stay(void) {
  void *handle = dlopen("libcrypt.so.1", RTLD_NOW);
  pm__unwind_refresh();
  if (handle) dlclose(handle);
  pm__unwind_refresh();
  uintptr_t first[] = {(uintptr_t)&look_up};
  uint64_t rows = pm__unwind_statistics().rows, spent = pm__unwind_statistics().build_ns;
  CHECK(rows > 0);
  CHECK(count_objects() > pm__unwind_statistics().objects); /* the library's, gone by now */
  CHECK_EQ_INT(pm__unwind_start(first, 1), 0);
  CHECK_EQ_INT(pm__unwind_statistics().build_ns, spent);
  CHECK_EQ_INT(count_objects(), pm__unwind_statistics().objects);
  pm__unwind_stop();
  CHECK_EQ_INT(pm__unwind_statistics().rows, 0);
  CHECK(!pm__unwind_locate(first[0]).has_function);
  CHECK_EQ_INT(pm__unwind_start(first, 1), 0);
  CHECK(pm__unwind_locate(first[0] + 1).has_function);
  pm__unwind_stop();
}

int main(void) {
  test_all_at_once();
  test_tables_stay();
  return check_report();
}
