/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "unwind/unwind.h"

static const char *const walkers[] = {"ours", "libunwind", "glibc backtrace()"};
static const char *const conditions[] = {"warm", "as the program left it", "cold"};

static struct measured *results;
static struct pm_pc_cache cache, emptied;
static struct pm_pc_cache *used = &cache;
static _Atomic(const struct pm_tables *) hazard;
static uint64_t clock_ns; /* what reading the clock twice takes */
static unsigned turn;

static uint64_t pcs[PM_NATIVE_FRAMES], cfas[PM_NATIVE_FRAMES];

static uint32_t walk_ours(const void *ucontext) {
  struct pm_walk walk = {.pc = pcs, .cfa = cfas, .capacity = PM_NATIVE_FRAMES};
  struct pm_stack stack = {.hi = pm__cpu_thread_pointer(), .probe = false};
  struct pm_registers registers = pm__cpu_interrupted(ucontext);
  extern void *__libc_stack_end;
  /* The main thread's stack lies above its control block; its end is the loader's to tell. */
  if (registers.sp > stack.hi) stack.hi = (uintptr_t)__libc_stack_end;
  const struct pm_tables *tables = pm__tables_acquire(&hazard);
  pm__walk_native(tables, used, registers, stack, &walk);
  pm__tables_release(&hazard);
  if (results && !(walk.flags & PM_WALK_ROOT)) results->incomplete++;
  return walk.count;
}

static uint32_t walk_libunwind(const void *ucontext) {
  unw_cursor_t cursor;
  uint32_t count = 0;
  if (unw_init_local2(&cursor, (unw_context_t *)(uintptr_t)ucontext, UNW_INIT_SIGNAL_FRAME))
    return 0;
  do {
    unw_word_t pc, sp;
    unw_get_reg(&cursor, UNW_REG_IP, &pc);
    unw_get_reg(&cursor, UNW_REG_SP, &sp);
    pcs[count] = pc;
    cfas[count++] = sp;
  } while (count < PM_NATIVE_FRAMES && unw_step(&cursor) > 0);
  return count;
}

/* glibc's own: libunwind exports a function of that name too. */
static int (*glibc_backtrace)(void **frames, int size);

static uint32_t walk_backtrace(void) {
  static void *frames[PM_NATIVE_FRAMES];
  return glibc_backtrace ? (uint32_t)glibc_backtrace(frames, PM_NATIVE_FRAMES) : 0;
}

static void find_backtrace(void) {
  void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc) glibc_backtrace = (int (*)(void **, int))dlsym(libc, "backtrace");
}

/* Stands for what a program does between two samples, 10 ms apart: more than an L2 cache. */
static void use_caches(void) {
  static uint8_t memory[8 << 20];
  for (size_t i = 0; i < sizeof memory; i += 64) memory[i]++;
}

static uint32_t walk_by(enum walker walker, const void *ucontext) {
  switch (walker) {
  case LIBUNWIND: return walk_libunwind(ucontext);
  case BACKTRACE: return walk_backtrace();
  default: return walk_ours(ucontext);
  }
}

static void prepare(unsigned method, enum walker walker, const void *ucontext) {
  used = method == PC_CACHE_EMPTY ? &emptied : &cache;
  if (method == PC_CACHE_EMPTY) memset(&emptied, 0, sizeof emptied);
  else if (method % CONDITIONS == WARM) walk_by(walker, ucontext);
  else if (method % CONDITIONS == COLD) use_caches();
}

void measure_sample(const void *ucontext) {
  int kept = errno;
  unsigned method = turn++ % METHODS;
  enum walker walker = method == PC_CACHE_EMPTY ? OURS : (enum walker)(method / CONDITIONS);
  prepare(method, walker, ucontext);
  uint64_t start = pm__clock_monotonic();
  uint32_t depth = walk_by(walker, ucontext);
  uint64_t took = pm__clock_monotonic() - start;
  if (results && results->count[method] < MEASURED_MAX) {
    results->ns[method][results->count[method]++] = took > clock_ns ? (float)(took - clock_ns) : 0;
    results->depth[method] = depth;
  }
  errno = kept;
}

static void on_signal(int number, siginfo_t *info, void *ucontext) {
  (void)number;
  (void)info;
  measure_sample(ucontext);
}

void measure_on(int number) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(number, &action, NULL);
}

void measure_into(struct measured *measured) { results = measured; }

static bool in_use(const struct pm_tables *tables) { return atomic_load(&hazard) == tables; }

static uint64_t time_of_clock(void) {
  uint64_t least = UINT64_MAX;
  for (unsigned i = 0; i < 1000; i++) {
    uint64_t start = pm__clock_monotonic(), took = pm__clock_monotonic() - start;
    if (took < least) least = took;
  }
  return least;
}

void measure_begin(void) {
  unw_context_t context;
  if (pm__unwind_start(NULL, 0)) exit(1);
  pm__unwind_refresh();
  pm__unwind_set_in_use(in_use);
  unw_getcontext(&context);
  walk_libunwind(&context);
  find_backtrace();
  walk_backtrace(); /* loads libgcc_s */
  pm__unwind_refresh();
  clock_ns = time_of_clock();
}

void measure_end(void) { pm__unwind_stop(); }

static int by_size(const void *left, const void *right) {
  float a = *(const float *)left, b = *(const float *)right;
  return a < b ? -1 : a > b;
}

double measure_quantile(struct measured *measured, unsigned method, double q) {
  uint32_t count = measured->count[method];
  if (!count) return 0;
  qsort(measured->ns[method], count, sizeof(float), by_size);
  return (double)measured->ns[method][(uint32_t)((count - 1) * q)];
}

static void report_method(struct measured *measured, unsigned method, const char *name) {
  unsigned ours = method == PC_CACHE_EMPTY ? 0 : method % CONDITIONS;
  double median = measure_quantile(measured, method, 0.5) / 1000;
  double reference = measure_quantile(measured, ours, 0.5) / 1000;
  printf("  %-42s %6u %8u %10.2f %10.2f %8.1f\n", name, measured->depth[method],
         measured->count[method], median, measure_quantile(measured, method, 0.99) / 1000,
         reference > 0 ? median / reference : 0);
}

void measure_report(const char *load, struct measured *measured) {
  printf("\n%s\n  %-42s %6s %8s %10s %10s %8s\n", load, "method", "frames", "samples", "median us",
         "p99 us", "x ours");
  for (unsigned walker = 0; walker < WALKERS; walker++)
    for (unsigned condition = 0; condition < CONDITIONS; condition++) {
      char name[64];
      snprintf(name, sizeof name, "%s, %s", walkers[walker], conditions[condition]);
      report_method(measured, walker * CONDITIONS + condition, name);
    }
  report_method(measured, PC_CACHE_EMPTY, "ours, pc cache emptied");
  if (measured->incomplete)
    printf("  %u of our walks did not reach the root\n", measured->incomplete);
}
