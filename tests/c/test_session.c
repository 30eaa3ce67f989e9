/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public interface from several threads, in a process without Python: one session
 * at a time, every answer one that the header names.
 */
#include <link.h>
#include <pthread.h>
#include <pyrometer.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loader.h"
#include "check.h"

/* The allocators of the sanitizers keep their locks over a fork: the child would wait for ever. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CAN_FORK 0
#else
#define CAN_FORK 1
#endif

enum { THREADS = 4, ROUNDS = 30, FORKS = 300 };

static _Atomic int running;
static _Atomic int most, sessions, refused, strange;

static int swallow(void *context, const void *bytes, size_t size) {
  (void)bytes;
  *(size_t *)context += size;
  return 0;
}

static void note(int error, int allowed, int also_allowed) {
  if (error != PYROMETER_OK && error != allowed && error != also_allowed) strange++;
}

static void have_session(void) {
  int now = atomic_fetch_add(&running, 1) + 1;
  if (now > most) most = now;
  usleep(2000);
  size_t bytes = 0;
  note(pyrometer_snapshot(swallow, &bytes), PYROMETER_OK, PYROMETER_OK);
  note(pyrometer_export_to("json", swallow, &bytes), PYROMETER_OK, PYROMETER_OK);
  note(pyrometer_thread_register(), PYROMETER_OK, PYROMETER_OK);
  atomic_fetch_sub(&running, 1);
  note(pyrometer_stop(), PYROMETER_OK, PYROMETER_OK);
  sessions++;
}

static void *take_turns(void *argument) {
  for (int i = 0; i < ROUNDS; i++) {
    int error = pyrometer_start(NULL);
    note(error, PYROMETER_E_ALREADY_RUNNING, PYROMETER_OK);
    if (error == PYROMETER_OK) {
      have_session();
    } else {
      refused++;
      usleep(500);
    }
    size_t bytes = 0;
    note(pyrometer_snapshot(swallow, &bytes), PYROMETER_E_NO_PROFILE, PYROMETER_OK);
    if (i % 8 == 0) note(pyrometer_reset(), PYROMETER_E_ALREADY_RUNNING, PYROMETER_OK);
  }
  return argument;
}

static void test_one_at_a_time(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, take_turns, NULL);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_EQ_INT(most, 1);
  CHECK_EQ_INT(strange, 0);
  CHECK(sessions > 0);
  CHECK_EQ_INT(sessions + refused, THREADS * ROUNDS);
  CHECK_EQ_INT(pyrometer_stop(), PYROMETER_E_NOT_RUNNING);
}

static int call_back(void *context, const void *bytes, size_t size) {
  size_t taken = 0;
  (void)bytes, (void)size;
  *(int *)context = pyrometer_stop();
  return pyrometer_snapshot(swallow, &taken) == PYROMETER_OK;
}

/* A sink may call us: it gets an answer, not a wait for itself. */
static void test_from_inside(void) {
  int answer = PYROMETER_OK;
  CHECK_EQ_INT(pyrometer_start(NULL), PYROMETER_OK);
  CHECK_EQ_INT(pyrometer_export_to("json", call_back, &answer), PYROMETER_OK);
  CHECK_EQ_INT(answer, PYROMETER_E_NOT_RUNNING);
  CHECK_EQ_INT(pyrometer_stop(), PYROMETER_OK);
}

static _Atomic bool forks_over;

static void *start_and_stop(void *argument) {
  while (!atomic_load(&forks_over)) {
    if (pyrometer_start(NULL) == PYROMETER_OK) pyrometer_stop();
  }
  return argument;
}

static int find_nothing(struct dl_phdr_info *info, size_t size, void *context) {
  (void)info, (void)size, (void)context;
  return 0;
}

static void *read_loader(void *argument) {
  while (!atomic_load(&forks_over)) pm__loader_each(find_nothing, NULL);
  return argument;
}

/*
 * Whatever other threads were in the middle of, the child can have a session of its
 * own, and use the loader.
 */
static void test_forks(void) {
  pthread_t other, reader;
  pthread_create(&other, NULL, start_and_stop, NULL);
  pthread_create(&reader, NULL, read_loader, NULL);
  for (int i = 0; i < FORKS; i++) {
    int status = -1;
    usleep((useconds_t)(i % 50 * 20));
    pid_t child = fork();
    if (child == 0) {
      alarm(20); /* a child that hangs is a child that fails */
      size_t bytes = 0;
      bool good = dl_iterate_phdr(find_nothing, NULL) == 0 &&
                  pyrometer_start(NULL) == PYROMETER_OK && pyrometer_stop() == PYROMETER_OK &&
                  pyrometer_snapshot(swallow, &bytes) == PYROMETER_OK;
      _exit(good ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ_INT(status, 0);
  }
  atomic_store(&forks_over, true);
  pthread_join(other, NULL);
  pthread_join(reader, NULL);
  CHECK_EQ_INT(pyrometer_reset(), PYROMETER_OK);
}

int main(void) {
  test_one_at_a_time();
  test_from_inside();
  if (CAN_FORK) test_forks();
  return check_report();
}
