/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run gate: a preloaded object that ends the process, naming the function,
 * when the signal handler calls something that allocates, locks, opens a file or
 * asks the loader. A library built with PYROMETER_GATE tells by
 * pyrometer_gate_enter and pyrometer_gate_leave when a thread is in its handler.
 *
 *   gcc -std=c11 -D_GNU_SOURCE -O2 -U_FORTIFY_SOURCE -shared -fPIC run_gate.c -o run_gate.so
 *   LD_PRELOAD=./run_gate.so PYROMETER_GATE_REPORT=1 python ...
 *
 * -O2 is needed: the call to the real dlsym must be a jump, because RTLD_NEXT
 * goes by the caller's address. For glibc.
 *
 * Environment: PYROMETER_GATE_REPORT: say at the end how often the handler ran.
 *              PYROMETER_GATE_PLANT:  have the handler call malloc, so that a
 *                                     test sees the gate fail.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int pyrometer_gate_enter(void);
void pyrometer_gate_leave(void);

static _Thread_local int depth __attribute__((tls_model("initial-exec")));
static _Atomic unsigned long handled, watched;
static bool planted, report;

/* Non-zero: the caller shall plant a fault. */
int pyrometer_gate_enter(void) {
  depth++;
  atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
  return planted;
}

void pyrometer_gate_leave(void) { depth--; }

__attribute__((noreturn, cold, noinline)) static void fail(const char *function) {
  static const char text[] = " called inside the signal handler\n";
  char line[128] = "run gate: ";
  depth = 0; /* abort() may use what we watch */
  strncat(line, function, 64);
  strcat(line, text);
  if (write(STDERR_FILENO, line, strlen(line)) < 0) _exit(125);
  abort();
}

static inline void watch(const char *function) {
  if (__builtin_expect(depth != 0, 0)) fail(function);
  atomic_fetch_add_explicit(&watched, 1, memory_order_relaxed);
}

/* glibc's own names: dlsym may allocate, so it cannot be asked for these. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

void *malloc(size_t size) {
  watch("malloc");
  return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  watch("calloc");
  return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
  watch("realloc");
  return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  watch("aligned_alloc");
  return __libc_memalign(alignment, size);
}

void free(void *block) {
  watch("free");
  __libc_free(block);
}

typedef void *dlsym_function(void *handle, const char *name);
static dlsym_function *real_dlsym;

/* dlvsym is not watched, so it can find what is; the versions: 2.34 and the first of each CPU. */
static dlsym_function *find_dlsym(void) {
  static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
  for (size_t i = 0; real_dlsym == NULL && i < sizeof versions / sizeof versions[0]; i++)
    real_dlsym = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
  if (real_dlsym == NULL) fail("dlsym (not found) is");
  return real_dlsym;
}

/* The condition variables of 2.2.5 are another structure than those of today. */
static void *find(const char *function) {
  void *found = dlvsym(RTLD_NEXT, function, "GLIBC_2.3.2");
  return found != NULL ? found : find_dlsym()(RTLD_NEXT, function);
}

void *dlsym(void *restrict handle, const char *restrict name) {
  watch("dlsym");
  if (real_dlsym == NULL) find_dlsym();
  return real_dlsym(handle, name);
}

#define WATCHED(name, parameters, ...)             \
  int name parameters {                            \
    static _Atomic(void *) next;                   \
    watch(#name);                                  \
    if (next == NULL) next = find(#name);          \
    return ((int(*) parameters)next)(__VA_ARGS__); \
  }

WATCHED(pthread_mutex_lock, (pthread_mutex_t * mutex), mutex)
WATCHED(pthread_mutex_trylock, (pthread_mutex_t * mutex), mutex)
WATCHED(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), lock)
WATCHED(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), lock)
WATCHED(pthread_cond_signal, (pthread_cond_t * condition), condition)
WATCHED(pthread_cond_broadcast, (pthread_cond_t * condition), condition)
WATCHED(pthread_cond_wait, (pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex),
        condition, mutex)
WATCHED(pthread_cond_timedwait,
        (pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
         const struct timespec *restrict until),
        condition, mutex, until)
WATCHED(posix_memalign, (void **block, size_t alignment, size_t size), block, alignment, size)
WATCHED(dladdr, (const void *address, Dl_info *info), address, info)
WATCHED(dl_iterate_phdr, (int (*callback)(struct dl_phdr_info *, size_t, void *), void *data),
        callback, data)

/* The mode is there only when the flags say so, but reading it without does no harm here. */
#define WATCHED_OPEN(name, parameters, ...)              \
  int name parameters {                                  \
    static _Atomic(void *) next;                         \
    watch(#name);                                        \
    if (next == NULL) next = find(#name);                \
    va_list rest;                                        \
    va_start(rest, flags);                               \
    mode_t mode = va_arg(rest, mode_t);                  \
    va_end(rest);                                        \
    return ((int(*) parameters)next)(__VA_ARGS__, mode); \
  }

WATCHED_OPEN(open, (const char *path, int flags, ...), path, flags)
WATCHED_OPEN(open64, (const char *path, int flags, ...), path, flags)
WATCHED_OPEN(openat, (int folder, const char *path, int flags, ...), folder, path, flags)
WATCHED_OPEN(openat64, (int folder, const char *path, int flags, ...), folder, path, flags)

__attribute__((constructor)) static void begin(void) {
  planted = getenv("PYROMETER_GATE_PLANT") != NULL;
  report = getenv("PYROMETER_GATE_REPORT") != NULL;
}

__attribute__((destructor)) static void end(void) {
  char line[128];
  if (!report) return;
  int size = snprintf(line, sizeof line, "run gate: %lu handler runs, %lu calls watched\n", handled,
                      watched);
  ssize_t ignored = write(STDERR_FILENO, line, (size_t)size); /* stderr may be closed by now */
  (void)ignored;
}
