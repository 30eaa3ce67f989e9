/* SPDX-License-Identifier: Apache-2.0 */
/* Walks of the test's own stack, out of a signal handler. */
#ifndef PM_TESTS_UNWIND_OWN_STACK_H
#define PM_TESTS_UNWIND_OWN_STACK_H

#include <signal.h>
#include <string.h>

#include "unwind/unwind.h"

#define NOINLINE __attribute__((noinline, noclone))

/* What the last walk found, and how the next one is to be made. */
static struct {
  uint64_t pc[PM_NATIVE_FRAMES], cfa[PM_NATIVE_FRAMES];
  struct pm_walk walk;
  uintptr_t hi; /* 0: not known, so probe */
} own;

static _Atomic(const struct pm_tables *) own_hazard;
static struct pm_pc_cache own_cache;

static inline bool own_in_use(const struct pm_tables *tables) {
  return atomic_load(&own_hazard) == tables;
}

static inline struct pm_walk *own_walk(void) {
  own.walk = (struct pm_walk){.pc = own.pc, .cfa = own.cfa, .capacity = PM_NATIVE_FRAMES};
  return &own.walk;
}

static inline void own_take(const void *ucontext) {
  struct pm_stack stack = {.hi = own.hi ? own.hi : UINTPTR_MAX & ~(uintptr_t)7, .probe = !own.hi};
  const struct pm_tables *tables = pm__tables_acquire(&own_hazard);
  pm__walk_native(tables, &own_cache, pm__cpu_interrupted(ucontext), stack, own_walk());
  pm__tables_release(&own_hazard);
}

static inline void own_handler(int number, siginfo_t *info, void *ucontext) {
  (void)number;
  (void)info;
  own_take(ucontext);
}

static inline void own_install(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(number, &action, NULL);
}

/* The start of the function that frame `i` stands in. */
static inline uintptr_t own_function(uint32_t i) {
  struct pm_location location = pm__unwind_locate(own.pc[i] - (i > 0));
  return location.object ? location.object->bias + location.function_rva : 0;
}

/* The first frame of `function`, or UINT32_MAX. */
static inline uint32_t own_find(uintptr_t function) {
  for (uint32_t i = 0; i < own.walk.count; i++)
    if (own_function(i) == function) return i;
  return UINT32_MAX;
}

#endif /* PM_TESTS_UNWIND_OWN_STACK_H */
