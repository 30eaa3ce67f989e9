/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread loads and unloads a library without pause and works in it, signals
 * walk all stacks, and the tables are refreshed as fast as they can be: nothing
 * may crash, and no snapshot may be freed under a walk (ASan watches).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"
#include "unwind/unwind.h"

enum { THREADS = 3 };

static struct walker {
  _Atomic(const struct pm_tables *) hazard;
  struct pm_pc_cache cache;
  uint64_t pc[PM_NATIVE_FRAMES], cfa[PM_NATIVE_FRAMES];
  uint32_t walks, complete;
} walkers[THREADS];
static __thread struct walker *self;
static _Atomic bool done;

static bool in_use(const struct pm_tables *tables) {
  for (unsigned i = 0; i < THREADS; i++)
    if (atomic_load(&walkers[i].hazard) == tables) return true;
  return false;
}

static void on_timer(int number, siginfo_t *info, void *ucontext) {
  (void)number, (void)info;
  if (!self) return;
  struct pm_walk walk = {.pc = self->pc, .cfa = self->cfa, .capacity = PM_NATIVE_FRAMES};
  struct pm_stack stack = {.hi = UINTPTR_MAX & ~(uintptr_t)7, .probe = true};
  const struct pm_tables *tables = pm__tables_acquire(&self->hazard);
  pm__walk_native(tables, &self->cache, pm__cpu_interrupted(ucontext), stack, &walk);
  pm__tables_release(&self->hazard);
  self->walks++;
  self->complete += walk.flags & PM_WALK_ROOT;
}

static void *load_and_unload(void *walker) {
  uint64_t times = 0;
  self = walker;
  for (; !atomic_load(&done); times++) {
    void *handle = dlopen("libcrypt.so.1", RTLD_NOW);
    if (!handle) break;
    char *(*crypt)(const char *, const char *) =
        (char *(*)(const char *, const char *))dlsym(handle, "crypt");
    if (crypt) crypt("word", "$1$salt$");
    dlclose(handle);
  }
  self = NULL;
  return (void *)(uintptr_t)times;
}

static void *work(void *walker) {
  self = walker;
  while (!atomic_load(&done)) free(malloc((size_t)rand() % 1000));
  self = NULL;
  return NULL;
}

static void refresh_for(double seconds) {
  struct timespec pause = {0, 200000};
  uint64_t end = pm__clock_monotonic() + (uint64_t)(seconds * 1e9);
  unsigned published = 0;
  while (pm__clock_monotonic() < end) {
    published += pm__unwind_refresh();
    nanosleep(&pause, NULL);
  }
  printf("%u times published\n", published);
}

int main(void) {
  struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
  struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  pthread_t loader, worker;
  void *times;
  CHECK_EQ_INT(pm__unwind_start(NULL, 0), 0);
  pm__unwind_refresh();
  pm__unwind_set_in_use(in_use);
  sigaction(SIGPROF, &action, NULL);
  pthread_create(&loader, NULL, load_and_unload, &walkers[1]);
  pthread_create(&worker, NULL, work, &walkers[2]);
  self = &walkers[0];
  setitimer(ITIMER_PROF, &often, NULL);
  refresh_for(1.5);
  setitimer(ITIMER_PROF, &never, NULL);
  atomic_store(&done, true);
  pthread_join(loader, &times);
  pthread_join(worker, NULL);
  printf("%u times loaded;", (unsigned)(uintptr_t)times);
  for (unsigned i = 0; i < THREADS; i++)
    printf(" %u of %u walks complete;", walkers[i].complete, walkers[i].walks);
  printf("\n");
  CHECK(walkers[2].walks > 0);
  CHECK_EQ_INT(walkers[2].complete, walkers[2].walks); /* it has nothing to do with the loading */
  pm__unwind_stop();
  return check_report();
}
