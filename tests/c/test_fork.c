/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program without Python that forks, spawns and executes while all its threads are
 * sampled. PYROMETER_TEST_FORKS and PYROMETER_TEST_GIB ask for more than the usual.
 */
#include <errno.h>
#include <pthread.h>
#include <pyrometer.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "sampler/sampler.h"

/* The allocators of the sanitizers keep their locks over a fork: the child would wait for ever. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAN_FORK 0
#else
#define CAN_FORK 1
#endif

enum { BUSY = 4, IMAGES = 200, CHILD_SECONDS = 20, OWN_SESSION = 50 };

static const struct pyrometer_options often = {
    .size = sizeof often, .rate_hz = PM_RATE_MAX, .flags = PYROMETER_NO_PYTHON};

static long setting(const char *name, long usual) {
  const char *text = getenv(name);
  return text == NULL ? usual : atol(text);
}

static int swallow(void *context, const void *bytes, size_t size) {
  (void)bytes;
  *(size_t *)context += size;
  return 0;
}

static _Atomic bool over;

static void *burn(void *argument) {
  volatile uint64_t sum = 0;
  while (!atomic_load(&over)) sum += sum * 3 + 1;
  return argument;
}

static void burn_ms(uint64_t ms) {
  volatile uint64_t sum = 0;
  uint64_t end = pm__clock_thread_self() + ms * 1000000u;
  while (pm__clock_thread_self() < end) sum += sum * 3 + 1;
}

static bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  return sigismember(&mask, signal) == 1;
}

/* Nothing of the parent's session is there, and one of its own can be had. */
static bool child_is_free(bool starts) {
  size_t bytes = 0;
  if (pyrometer_snapshot(swallow, &bytes) != PYROMETER_E_NO_PROFILE) return false;
  if (!starts) return true;
  if (pyrometer_start(&often) != PYROMETER_OK) return false;
  burn_ms(20);
  return pyrometer_stop() == PYROMETER_OK && pyrometer_export_to("json", swallow, &bytes) == 0;
}

static int status_of(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

static int fork_once(bool starts) {
  pid_t child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS); /* a child that hangs is a child that fails */
    _exit(child_is_free(starts) && !is_blocked(pm__sampler_signal()) ? 0 : 1);
  }
  return status_of(child);
}

static void test_forks(void) {
  long forks = setting("PYROMETER_TEST_FORKS", 500), bad = 0;
  for (long i = 0; i < forks; i++) bad += fork_once(i % OWN_SESSION == 0) != 0;
  CHECK_EQ_INT(bad, 0);
  CHECK(!is_blocked(pm__sampler_signal()));
}

static char *arguments[] = {(char *)"true", NULL}, *environment[] = {NULL};

static pid_t fork_image(void) {
  pid_t child = fork();
  if (child == 0) execve("/bin/true", arguments, environment);
  return child;
}

static pid_t vfork_image(void) {
  pid_t child = vfork();
  if (child == 0) {
    execve("/bin/true", arguments, environment);
    _exit(1);
  }
  return child;
}

static pid_t spawn_image(void) {
  pid_t child = -1;
  posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environment);
  return child;
}

/* A pending sample must not be what the new program begins with: its default would end it. */
static pid_t sampled_image(void) {
  static uint64_t turn;
  turn++;
  pid_t child = fork();
  if (child == 0) {
    if (pyrometer_start(&often) != PYROMETER_OK) _exit(1);
    burn_ms(3 + turn % 3); /* the timer is near its end */
    execve("/bin/true", arguments, environment);
  }
  return child;
}

static void test_images(pid_t (*make)(void), int times) {
  int bad = 0;
  for (int i = 0; i < times; i++) bad += status_of(make()) != 0;
  CHECK_EQ_INT(bad, 0);
}

static struct {
  int before, parent; /* how often our signal was blocked there */
  _Atomic int nested; /* forks of a signal handler inside of a fork */
  bool nest;
} seen;

/* The test registers before the library does, so this runs inside of what the library does. */
static void note_before(void) {
  seen.before += is_blocked(pm__sampler_signal());
  if (seen.nest) raise(SIGUSR1);
}

static void note_parent(void) { seen.parent += is_blocked(pm__sampler_signal()); }

static void fork_inside(int signal) {
  (void)signal;
  if (!seen.nest) return;
  seen.nest = false;
  pid_t child = fork();
  if (child == 0) _exit(0);
  seen.nested += status_of(child) == 0;
}

static void test_mask(void) {
  seen.before = seen.parent = 0;
  CHECK_EQ_INT(fork_once(false), 0);
  CHECK_EQ_INT(seen.before, 1);
  CHECK_EQ_INT(seen.parent, 1);
  CHECK(!is_blocked(pm__sampler_signal()));
}

static void test_fork_inside_a_fork(void) {
  struct sigaction action = {.sa_handler = fork_inside};
  sigaction(SIGUSR1, &action, NULL);
  seen.nest = true;
  CHECK_EQ_INT(fork_once(true), 0);
  CHECK_EQ_INT(seen.nested, 1);
  CHECK(!is_blocked(pm__sampler_signal()));
}

static void test_a_mask_of_the_programs_own(void) {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, pm__sampler_signal());
  pthread_sigmask(SIG_BLOCK, &ours, NULL);
  pid_t child = fork();
  if (child == 0) _exit(is_blocked(pm__sampler_signal()) ? 0 : 1);
  CHECK_EQ_INT(status_of(child), 0);
  CHECK(is_blocked(pm__sampler_signal()));
  pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
}

enum { FROM_SINK = 2 };
static _Atomic int forked_in_sink;
static pid_t from_sink[FROM_SINK];

/* On the collector's thread. The children do not leave by _exit: they just return. */
static int fork_in_sink(void *context, const void *row, size_t size) {
  (void)context, (void)row, (void)size;
  int turn = atomic_load(&forked_in_sink);
  if (turn == FROM_SINK) return 0;
  pid_t child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    if (!child_is_free(turn == 0)) _exit(1);
    atomic_store(&forked_in_sink, FROM_SINK);
    return 0;
  }
  from_sink[turn] = child;
  atomic_store(&forked_in_sink, turn + 1);
  return 0;
}

static void test_fork_in_a_sink(void) {
  const struct pyrometer_options reporting = {.size = sizeof reporting,
                                              .rate_hz = PM_RATE_MAX,
                                              .flags = PYROMETER_NO_PYTHON,
                                              .report_every_ms = 100,
                                              .report_sink = fork_in_sink};
  CHECK_EQ_INT(pyrometer_start(&reporting), PYROMETER_OK);
  for (int i = 0; i < 1000 && atomic_load(&forked_in_sink) < FROM_SINK; i++) usleep(10000);
  CHECK_EQ_INT(forked_in_sink, FROM_SINK);
  for (int i = 0; i < forked_in_sink; i++) CHECK_EQ_INT(status_of(from_sink[i]), 0);
  CHECK_EQ_INT(pyrometer_stop(), PYROMETER_OK);
}

static uint64_t fork_ns(void) {
  uint64_t begin = pm__clock_thread_self();
  pid_t child = fork();
  if (child == 0) _exit(0);
  uint64_t took = pm__clock_thread_self() - begin;
  CHECK_EQ_INT(status_of(child), 0);
  return took;
}

/* Its copy takes several periods of the timer. Shortest of some, in turn. */
static void test_a_large_process(void) {
  size_t size = (size_t)setting("PYROMETER_TEST_GIB", 1) << 30;
  void *memory =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  if (memory == MAP_FAILED) return;
  madvise(memory, size, MADV_NOHUGEPAGE);
  for (size_t at = 0; at < size; at += 4096) ((volatile char *)memory)[at] = 1;
  uint64_t least[2] = {UINT64_MAX, UINT64_MAX};
  for (int i = 0; i < 10; i++) {
    bool armed = i % 2;
    if (armed) CHECK_EQ_INT(pyrometer_start(&often), PYROMETER_OK);
    uint64_t took = fork_ns();
    if (armed) CHECK_EQ_INT(pyrometer_stop(), PYROMETER_OK);
    if (took < least[armed]) least[armed] = took;
  }
  double ratio = (double)least[1] / (double)least[0];
  printf("a fork of %zu GiB: %.1f ms of CPU, sampled %.3f times that\n", size >> 30,
         (double)least[0] / 1e6, ratio);
  CHECK(ratio < 1.5);
  munmap(memory, size);
}

static void test_under_load(void) {
  pthread_t threads[BUSY];
  for (int i = 0; i < BUSY; i++) pthread_create(&threads[i], NULL, burn, NULL);
  CHECK_EQ_INT(pyrometer_start(&often), PYROMETER_OK);
  test_forks();
  test_images(fork_image, IMAGES);
  test_images(vfork_image, IMAGES);
  test_images(spawn_image, IMAGES);
  test_images(sampled_image, IMAGES / 10);
  test_mask();
  test_fork_inside_a_fork();
  test_a_mask_of_the_programs_own();
  CHECK_EQ_INT(pyrometer_stop(), PYROMETER_OK);
  test_fork_in_a_sink();
  atomic_store(&over, true);
  for (int i = 0; i < BUSY; i++) pthread_join(threads[i], NULL);
}

int main(void) {
  if (CAN_FORK) {
    pthread_atfork(note_before, note_parent, NULL);
    test_under_load();
    test_a_large_process();
  }
  return check_report();
}
