/* SPDX-License-Identifier: Apache-2.0 */
/* Walks of this process's own stacks: deep, through signals, through code without CFI. */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#include "check.h"
#include "signal/probe.h"
#include "unwind_own_stack.h"

void no_cfi_leaf(void);
void no_cfi_frame(void);
void no_cfi_aligned_rbx(void);
void no_cfi_aligned_r12(void);

int main(void);

/* Keeps a call from becoming a jump. */
#define STAY() __asm__ volatile("")

/* ---- pm__unwind_here ---- */

static uintptr_t here_cfa[3];

static NOINLINE void here_inner(void) {
  here_cfa[0] = (uintptr_t)__builtin_dwarf_cfa();
  pm__unwind_here(own_walk());
  STAY();
}
static NOINLINE void here_middle(int words) {
  char *room = __builtin_alloca((size_t)words); /* makes the CFA relative to the frame pointer */
  here_cfa[1] = (uintptr_t)__builtin_dwarf_cfa();
  __asm__ volatile("" : : "r"(room) : "memory");
  here_inner();
  STAY();
}
static NOINLINE void here_outer(void) {
  here_cfa[2] = (uintptr_t)__builtin_dwarf_cfa();
  here_middle(300);
  STAY();
}

static void test_here(void) {
  static void (*const functions[])(void) = {here_inner, (void (*)(void))here_middle, here_outer};
  here_outer();
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT);
  CHECK_EQ_INT(own.walk.skipped, 0);
  for (uint32_t i = 0; i < 3; i++) {
    CHECK_EQ_INT(own_function(i), (uintptr_t)functions[i]);
    CHECK_EQ_INT(own.cfa[i], here_cfa[i]);
  }
  CHECK(own_find((uintptr_t)&main) != UINT32_MAX);
}

/* ---- depth ---- */

static NOINLINE int recurse(int depth) {
  int below = 0;
  if (depth > 1) below = recurse(depth - 1);
  else raise(SIGUSR1);
  STAY();
  return below + 1;
}

static void check_deep(int depth) {
  recurse(3);
  uint32_t shallow = own.walk.count;
  uint64_t root = own.pc[shallow - 1];
  recurse(depth);
  struct pm_walk *walk = &own.walk;
  CHECK_EQ_INT(walk->flags, PM_WALK_ROOT);
  CHECK_EQ_INT(walk->count + walk->skipped, shallow - 3 + (uint32_t)depth);
  CHECK_EQ_INT(walk->count, walk->skipped ? PM_NATIVE_FRAMES : shallow - 3 + (uint32_t)depth);
  CHECK_EQ_INT(walk->split, walk->skipped ? PM_NATIVE_FRAMES / 2 : walk->count);
  CHECK_EQ_INT(own.pc[walk->count - 1], root);
  for (uint32_t i = 1; i + 1 < walk->count; i++) CHECK(own.cfa[i] > own.cfa[i - 1]);
  CHECK_EQ_INT(own_function(walk->count / 2), (uintptr_t)&recurse);
}

static void *deep_thread(void *unused) {
  pthread_attr_t attributes;
  void *lo;
  size_t size;
  (void)unused;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &lo, &size);
  pthread_attr_destroy(&attributes);
  own.hi = (uintptr_t)lo + size;
  check_deep(40);
  check_deep(300);
  own.hi = 0;
  check_deep(5000);
  return NULL;
}

static void test_deep(void) {
  pthread_t thread;
  own_install(SIGUSR1, own_handler, 0);
  check_deep(40);
  check_deep(300);
  check_deep(5000);
  pthread_create(&thread, NULL, deep_thread, NULL);
  pthread_join(thread, NULL);
}

/* ---- signal frames ---- */

static uint64_t outside_cfa;
static volatile int zero;

static void outer_handler(int number) {
  (void)number;
  raise(SIGUSR1);
  STAY();
}

static NOINLINE void fault_here(void) {
  outside_cfa = (uintptr_t)__builtin_dwarf_cfa();
  __asm__ volatile("movl $1, (%0)" : : "r"((uintptr_t)zero) : "memory");
  STAY();
}

static sigjmp_buf after_fault;
static void fault_handler(int number, siginfo_t *info, void *ucontext) {
  (void)number;
  (void)info;
  (void)ucontext;
  raise(SIGUSR1);
  siglongjmp(after_fault, 1);
}

static void test_signal_frame(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = outer_handler;
  sigaction(SIGUSR2, &action, NULL);
  raise(SIGUSR2);
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT);
  uint32_t handler = own_find((uintptr_t)&outer_handler);
  CHECK(handler != UINT32_MAX);
  CHECK(own_find((uintptr_t)&main) > handler);
}

/* The interrupted frame's CFA comes out right, whichever stack the handler is on. */
static void check_fault(int flags) {
  own_install(SIGSEGV, fault_handler, flags | SA_NODEFER);
  if (!sigsetjmp(after_fault, 1)) fault_here();
  uint32_t frame = own_find((uintptr_t)&fault_here);
  CHECK(frame != UINT32_MAX);
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT);
  if (frame != UINT32_MAX) CHECK_EQ_INT(own.cfa[frame], outside_cfa);
  signal(SIGSEGV, SIG_DFL);
}

static void test_fault(void) {
  enum { ALTERNATE = 1 << 16 };
  stack_t alternate = {.ss_sp = malloc(ALTERNATE), .ss_size = ALTERNATE},
          off = {.ss_flags = SS_DISABLE};
  check_fault(0);
  sigaltstack(&alternate, NULL);
  check_fault(SA_ONSTACK);
  sigaltstack(&off, NULL);
  free(alternate.ss_sp);
}

/* ---- library code between our frames ---- */

static int compare_and_walk(const void *left, const void *right) {
  raise(SIGUSR1);
  return *(const int *)left - *(const int *)right;
}

static void test_qsort(void) {
  int numbers[] = {2, 1};
  qsort(numbers, 2, sizeof *numbers, compare_and_walk);
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT);
  uint32_t callback = own_find((uintptr_t)&compare_and_walk);
  CHECK(callback != UINT32_MAX && own_find((uintptr_t)&main) > callback + 1);
}

static _Unwind_Reason_Code stop_and_walk(int version, _Unwind_Action actions,
                                         _Unwind_Exception_Class class,
                                         struct _Unwind_Exception *exception,
                                         struct _Unwind_Context *context, void *jump) {
  (void)version, (void)actions, (void)class, (void)exception, (void)context;
  raise(SIGUSR1);
  siglongjmp(*(sigjmp_buf *)jump, 1);
}

static void test_forced_unwind(void) {
  static struct _Unwind_Exception exception;
  sigjmp_buf jump;
  if (!sigsetjmp(jump, 1)) _Unwind_ForcedUnwind(&exception, stop_and_walk, &jump);
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT);
  CHECK(own_find((uintptr_t)&stop_and_walk) != UINT32_MAX);
  CHECK(own_find((uintptr_t)&main) != UINT32_MAX);
}

static sigjmp_buf after_throw;
static void walk_at_terminate(void) {
  raise(SIGUSR1);
  siglongjmp(after_throw, 1);
}

/* A C++ exception that nobody catches: the walk leads through the C++ runtime. */
static void test_cxx_throw(void) {
  void *runtime = dlopen("libstdc++.so.6", RTLD_NOW);
  if (!runtime) return;
  void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(runtime, "__cxa_allocate_exception");
  void (*throw)(void *, void *, void (*)(void *)) =
      (void (*)(void *, void *, void (*)(void *)))dlsym(runtime, "__cxa_throw");
  void (*(*set_terminate)(void (*)(void)))(void) =
      (void (*(*)(void (*)(void)))(void))dlsym(runtime, "_ZSt13set_terminatePFvvE");
  pm__unwind_refresh();
  set_terminate(walk_at_terminate);
  if (!sigsetjmp(after_throw, 1)) throw(allocate(sizeof(int)), dlsym(runtime, "_ZTIi"), NULL);
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT);
  uint32_t frame = own_find((uintptr_t)&walk_at_terminate);
  CHECK(frame != UINT32_MAX && own_find((uintptr_t)&main) > frame + 1);
}

/* ---- code without CFI ---- */

static NOINLINE void call_fixture(void (*fixture)(void), int words) {
  /* Without leftovers of earlier calls, which no guess could tell from the truth. */
  char *room = __builtin_alloca((size_t)words);
  memset(room, 0, (size_t)words);
  __asm__ volatile("" : : "r"(room) : "memory");
  outside_cfa = (uintptr_t)__builtin_dwarf_cfa();
  fixture();
  STAY();
}

static void check_fixture(void (*fixture)(void)) {
  memset(&own.walk, 0, sizeof own.walk);
  call_fixture(fixture, 200);
  CHECK(own.walk.count > 2);
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT | PM_WALK_GUESSED);
  CHECK_EQ_INT(own_function(1), (uintptr_t)&call_fixture);
  CHECK_EQ_INT(own.cfa[1], outside_cfa);
  CHECK(own_find((uintptr_t)&main) != UINT32_MAX);
}

static void test_no_cfi(void) {
  own_install(SIGTRAP, own_handler, 0);
  check_fixture(no_cfi_leaf);
  check_fixture(no_cfi_frame);
  check_fixture(no_cfi_aligned_rbx);
  check_fixture(no_cfi_aligned_r12);
}

/* As a JIT compiler writes: a frame pointer, and no CFI anywhere. */
static const uint8_t jit_caller[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
static const uint8_t jit_leaf[] = {0x55, 0x48, 0x89, 0xe5, 0xcc, 0x5d, 0xc3};

static void raise_signal(void) {
  raise(SIGUSR1);
  STAY();
}

static void test_jit(void) {
  uint8_t *code =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return;
  memcpy(code, jit_caller, sizeof jit_caller);
  memcpy(code + 64, jit_leaf, sizeof jit_leaf);
  void (*caller)(void (*)(void)) = (void (*)(void (*)(void)))(void *)code;
  caller(raise_signal); /* JIT code in the middle */
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT | PM_WALK_GUESSED);
  uint32_t frame = own_find((uintptr_t)&raise_signal);
  CHECK(frame != UINT32_MAX && own.pc[frame + 1] == (uintptr_t)code + 6);
  CHECK(own_find((uintptr_t)&main) != UINT32_MAX);
  caller((void (*)(void))(void *)(code + 64)); /* and innermost, called by JIT code */
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT | PM_WALK_GUESSED);
  CHECK_EQ_INT(own.pc[1], (uintptr_t)code + 6);
  CHECK(own_find((uintptr_t)&main) != UINT32_MAX);
  munmap(code, 4096);
}

/* A call through a null pointer: the caller's address is still on top. */
static void test_null_call(void) {
  own_install(SIGSEGV, fault_handler, SA_NODEFER);
  void (*volatile nowhere)(void) = NULL;
  if (!sigsetjmp(after_fault, 1)) nowhere();
  CHECK_EQ_INT(own.walk.flags, PM_WALK_ROOT | PM_WALK_GUESSED);
  CHECK(own_find((uintptr_t)&main) != UINT32_MAX);
  signal(SIGSEGV, SIG_DFL);
}

/* ---- the objects ---- */

struct seen {
  bool program, vdso, libc;
};

static void see(void *context, const struct pm_object *object) {
  struct seen *seen = context;
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = 0;
  if (!strcmp(object->path, path) && object->id == 1) seen->program = true;
  if (!strcmp(object->path, "[vdso]") && object->build_id_size) seen->vdso = true;
  if (strstr(object->path, "libc.so.6") && object->build_id_size == 20) seen->libc = true;
}

static void test_objects(void) {
  struct seen seen = {0};
  pm__unwind_each_object(see, &seen);
  CHECK(seen.program);
  CHECK(seen.vdso);
  CHECK(seen.libc);
  struct pm_unwind_statistics statistics = pm__unwind_statistics();
  CHECK(statistics.rows > 20000);
  CHECK(statistics.bytes < statistics.rows * 12);
  CHECK_EQ_INT(statistics.rejected, 0);
  struct pm_location location = pm__unwind_locate((uintptr_t)&main + 3);
  CHECK(location.has_function);
  CHECK_EQ_INT(location.rva - location.function_rva, 3);
  CHECK(!pm__unwind_locate((uintptr_t)&seen).object);
}

/* Comes and goes; nobody else in the test uses it. */
static const char guest[] = "libcrypt.so.1";

static void test_load_and_unload(void) {
  pm__unwind_refresh();
  CHECK(!pm__unwind_refresh());
  const struct pm_tables *before = pm__tables_acquire(&own_hazard);
  uint32_t generation = before->generation, count = before->count;
  void *handle = dlopen(guest, RTLD_NOW);
  if (!handle) return;
  uintptr_t inside = (uintptr_t)dlsym(handle, "crypt");
  CHECK(pm__unwind_refresh());
  CHECK(pm__unwind_locate(inside).has_function);
  CHECK_EQ_INT(before->count, count); /* still ours to read: the hazard names it */
  const struct pm_tables *with = pm__tables_acquire(&own_hazard);
  CHECK_EQ_INT(with->generation, generation);
  CHECK_EQ_INT(with->count, count + 1);
  uint32_t id = pm__unwind_locate(inside).object->id;
  dlclose(handle);
  CHECK(pm__unwind_refresh());
  CHECK(!pm__unwind_locate(inside).object);
  CHECK(pm__tables_span(with, inside)->table->rows > 0); /* held, though unloaded */
  CHECK(pm__tables_acquire(&own_hazard)->generation != generation);
  pm__tables_release(&own_hazard);
  handle = dlopen(guest, RTLD_NOW);
  CHECK(pm__unwind_refresh());
  if ((uintptr_t)dlsym(handle, "crypt") == inside)
    CHECK_EQ_INT(pm__unwind_locate(inside).object->id, id);
  dlclose(handle);
  CHECK(pm__unwind_refresh());
}

static void test_probe(void) {
  uint8_t *pages = mmap(NULL, 3 * PM_PROBE_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uintptr_t at = (uintptr_t)pages;
  struct pm_probe probe = {0, 0};
  sigset_t mask, after;
  mprotect(pages + PM_PROBE_PAGE, PM_PROBE_PAGE, PROT_NONE);
  sigprocmask(SIG_SETMASK, NULL, &mask);
  errno = 77;
  CHECK(pm__probe_page(at + 100));
  CHECK(!pm__probe_page(at + PM_PROBE_PAGE));
  CHECK(pm__probe_page(at + 2 * PM_PROBE_PAGE));
  CHECK(!pm__probe_page(0));
  CHECK(!pm__probe_page(UINTPTR_MAX));
  CHECK(pm__probe_range(&probe, at, 8));
  CHECK(!pm__probe_range(&probe, at + PM_PROBE_PAGE - 4, 8));
  CHECK(!pm__probe_range(&probe, UINTPTR_MAX - 3, 8));
  CHECK_EQ_INT(probe.hi - probe.lo, PM_PROBE_PAGE);
  CHECK_EQ_INT(errno, 77);
  sigprocmask(SIG_SETMASK, NULL, &after);
  CHECK(!memcmp(&mask, &after, 8)); /* all that the kernel knows of */
  munmap(pages, 3 * PM_PROBE_PAGE);
}

static void test_restart(void) {
  pm__unwind_stop();
  CHECK(!pm__unwind_locate((uintptr_t)&main).object);
  CHECK(!pm__unwind_refresh());
  CHECK_EQ_INT(pm__unwind_start(NULL, 0), 0);
  CHECK(pm__unwind_locate((uintptr_t)&main).object != NULL);
  pm__unwind_refresh();
  test_here();
}

int main(void) {
  uintptr_t first[] = {(uintptr_t)&main, (uintptr_t)&gnu_get_libc_version};
  CHECK_EQ_INT(pm__unwind_start(first, 2), 0);
  pm__unwind_set_in_use(own_in_use);
  test_here();
  CHECK(pm__unwind_refresh());
  test_deep();
  test_signal_frame();
  test_fault();
  test_qsort();
  test_forced_unwind();
  test_cxx_throw();
  test_no_cfi();
  test_jit();
  test_null_call();
  test_objects();
  test_load_and_unload();
  test_probe();
  test_restart();
  pm__unwind_stop();
  return check_report();
}
