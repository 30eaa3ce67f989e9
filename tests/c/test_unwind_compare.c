/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole walks against libunwind's: from a CPU timer's signal, and, stricter, after
 * every single instruction of ordinary library code (the trap flag), which meets
 * each prologue, epilogue, PLT slot and the lazy resolver.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "check.h"
#include "unwind_own_stack.h"

enum { TRAP_FLAG = 0x100, SHOWN = 5 };

static struct {
  unsigned walks, equal, frames, differ, guessed, ours_longer;
  uint64_t ours[PM_NATIVE_FRAMES], theirs[PM_NATIVE_FRAMES]; /* of the first that differed */
  uint32_t ours_count, theirs_count;
} seen;

static uint32_t walk_by_libunwind(void *ucontext, uint64_t *pcs) {
  unw_cursor_t cursor;
  uint32_t count = 0;
  if (unw_init_local2(&cursor, ucontext, UNW_INIT_SIGNAL_FRAME)) return 0;
  do {
    unw_word_t pc;
    unw_get_reg(&cursor, UNW_REG_IP, &pc);
    if (!pc) break;
    pcs[count++] = pc;
  } while (count < PM_NATIVE_FRAMES && unw_step(&cursor) > 0);
  return count;
}

static bool same(const uint64_t *theirs, uint32_t count) {
  return count == own.walk.count && !memcmp(own.pc, theirs, count * sizeof *theirs);
}

static void note_difference(const uint64_t *theirs, uint32_t count) {
  /* libunwind goes by the frame pointer where it has no CFI, and ends early when that fails. */
  if (own.walk.flags == (PM_WALK_ROOT | PM_WALK_GUESSED)) {
    seen.guessed++;
    return;
  }
  if (seen.differ++) return;
  memcpy(seen.ours, own.pc, sizeof seen.ours);
  memcpy(seen.theirs, theirs, count * sizeof *theirs);
  seen.ours_count = own.walk.count;
  seen.theirs_count = count;
}

static void compare(void *ucontext) {
  static uint64_t theirs[PM_NATIVE_FRAMES];
  int kept = errno;
  own_take(ucontext);
  uint32_t count = walk_by_libunwind(ucontext, theirs);
  seen.walks++;
  seen.frames += count;
  if (same(theirs, count)) seen.equal++;
  else note_difference(theirs, count);
  errno = kept;
}

static void on_timer(int number, siginfo_t *info, void *ucontext) {
  (void)number, (void)info;
  compare(ucontext);
}

static volatile sig_atomic_t steps_left;

/* Its first signal is raised by hand; the trap flag brings the others. */
static void on_step(int number, siginfo_t *info, void *ucontext) {
  (void)number, (void)info;
  greg_t *flags = &((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_EFL];
  compare(ucontext);
  *flags = --steps_left > 0 ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
}

/* ---- ordinary code ---- */

static int by_value(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return a < b ? -1 : a > b;
}

static NOINLINE double use_numbers(void) {
  double numbers[40];
  char text[64];
  for (int i = 0; i < 40; i++) {
    snprintf(text, sizeof text, "%d.%de-2", i * 7919 % 101, i);
    numbers[i] = strtod(text, NULL);
  }
  qsort(numbers, 40, sizeof *numbers, by_value);
  return numbers[20];
}

static NOINLINE size_t use_memory(void) {
  char *texts[30];
  size_t sum = 0;
  for (int i = 0; i < 30; i++) {
    texts[i] = malloc((size_t)(1 << i % 16));
    memset(texts[i], 'x', (size_t)(1 << i % 16));
    texts[i] = realloc(texts[i], 300);
    texts[i][299] = 0;
    sum += strlen(texts[i]);
  }
  for (int i = 0; i < 30; i++) free(texts[i]);
  return sum;
}

static NOINLINE long use_time(void) {
  struct timespec now;
  time_t seconds;
  struct tm parts;
  char text[100];
  clock_gettime(CLOCK_MONOTONIC, &now); /* into the vDSO */
  seconds = time(NULL);
  gmtime_r(&seconds, &parts);
  return now.tv_nsec + (long)strftime(text, sizeof text, "%A %d %B %Y %H:%M", &parts);
}

static NOINLINE int use_depth(int depth, int words) {
  char *room = __builtin_alloca((size_t)words);
  __asm__ volatile("" : : "r"(room) : "memory");
  int sum = depth ? use_depth(depth - 1, words * 7 % 61 + 1) : (int)use_numbers();
  return sum + (room[0] & 1);
}

static void step_numbers(void) { use_numbers(); }
static void step_memory(void) { use_memory(); }
static void step_time(void) { use_time(); }
static void step_depth(void) { use_depth(12, 9); }
static void step_errors(void) { own.hi = strerror(ENOENT) == NULL; }

/* Not run before, so that the first calls lead through the lazy resolver. */
static void step_through(void (*code)(void)) {
  steps_left = 12000;
  raise(SIGTRAP);
  code();
  steps_left = 0;
}

static void test_single_steps(void) {
  memset(&seen, 0, sizeof seen);
  own_install(SIGTRAP, on_step, 0);
  step_through(step_numbers);
  step_through(step_memory);
  step_through(step_time);
  step_through(step_depth);
  step_through(step_errors);
  CHECK(seen.walks > 20000);
}

static void test_timer(void) {
  struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  memset(&seen, 0, sizeof seen);
  own_install(SIGPROF, on_timer, SA_RESTART);
  setitimer(ITIMER_PROF, &often, NULL);
  while (seen.walks < 150) use_depth(20, 5), use_memory(), use_time();
  setitimer(ITIMER_PROF, &never, NULL);
}

static void show(const char *name, const uint64_t *pcs, uint32_t count) {
  printf(" %s:", name);
  for (uint32_t i = 0; i < count && i < 12; i++) {
    struct pm_location location = pm__unwind_locate(pcs[i] - (i > 0));
    const char *path = location.object ? location.object->path : "?", *slash = strrchr(path, '/');
    printf(" %s+%llx", slash ? slash + 1 : path, (unsigned long long)location.rva);
  }
  printf("\n");
}

static void report(const char *name) {
  printf("%s: %u walks, %u frames, %u equal, %u guessed by us, %u differ\n", name, seen.walks,
         seen.frames, seen.equal, seen.guessed, seen.differ);
  if (seen.differ) show("ours", seen.ours, seen.ours_count);
  if (seen.differ) show("theirs", seen.theirs, seen.theirs_count);
  CHECK_EQ_INT(seen.differ, 0);
  CHECK(seen.guessed * 1000 <= seen.walks);
}

int main(void) {
  CHECK_EQ_INT(pm__unwind_start(NULL, 0), 0);
  pm__unwind_refresh();
  pm__unwind_set_in_use(own_in_use);
  test_single_steps();
  report("single steps");
  test_timer();
  report("timer");
  pm__unwind_stop();
  return check_report();
}
