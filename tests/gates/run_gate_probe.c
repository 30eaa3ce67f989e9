/* SPDX-License-Identifier: Apache-2.0 */
/* For test_run_gate.py: calls the function named by its argument as a handler would. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As in src/signal/gate.h of the library. */
extern int pyrometer_gate_enter(void) __attribute__((weak, noplt));
extern void pyrometer_gate_leave(void) __attribute__((weak, noplt));

static void *volatile sink;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static Dl_info info;

static int stop(struct dl_phdr_info *unused, size_t size, void *data) {
  (void)unused, (void)size, (void)data;
  return 1;
}

static void call_nothing(void) {}
static void call_malloc(void) { sink = malloc(1); }
static void call_calloc(void) { sink = calloc(1, 1); }
static void call_realloc(void) { sink = realloc(sink, 2); }
static void call_free(void) { free(sink); }
static void call_lock(void) { pthread_mutex_lock(&mutex); }
static void call_trylock(void) { pthread_mutex_trylock(&mutex); }
static void call_signal(void) { pthread_cond_signal(&condition); }
static void call_broadcast(void) { pthread_cond_broadcast(&condition); }
static void call_iterate(void) { dl_iterate_phdr(stop, NULL); }
static void call_dladdr(void) { dladdr((void *)(size_t)stop, &info); }
static void call_dlsym(void) { sink = dlsym(RTLD_DEFAULT, "getenv"); }
static void call_open(void) { close(open("/dev/null", O_RDONLY)); }
static void call_openat(void) { close(openat(AT_FDCWD, "/dev/null", O_RDONLY)); }

static const struct {
  const char *name;
  void (*call)(void);
} calls[] = {
    {"nothing", call_nothing},
    {"malloc", call_malloc},
    {"calloc", call_calloc},
    {"realloc", call_realloc},
    {"free", call_free},
    {"pthread_mutex_lock", call_lock},
    {"pthread_mutex_trylock", call_trylock},
    {"pthread_cond_signal", call_signal},
    {"pthread_cond_broadcast", call_broadcast},
    {"dl_iterate_phdr", call_iterate},
    {"dladdr", call_dladdr},
    {"dlsym", call_dlsym},
    {"open", call_open},
    {"openat", call_openat},
};

/* Outside a handler every one of them works; in the handler the gate lets only "nothing" pass. */
int main(int count, char **arguments) {
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) calls[i].call();
  sink = NULL;
  if (count != 2 || pyrometer_gate_enter == NULL) return 3;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    if (strcmp(calls[i].name, arguments[1]) != 0) continue;
    pyrometer_gate_enter();
    calls[i].call();
    pyrometer_gate_leave();
  }
  return 0;
}
