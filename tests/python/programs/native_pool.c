/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of native threads that burn CPU in C: no Python frame is anywhere near them. */
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

static double thread_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline)) double burn_native(double seconds) {
  volatile double value = 1.0;
  while (thread_seconds() < seconds) {
    for (int i = 0; i < 20000; i++) value = value * 1.0000001 + 1e-9;
  }
  return value;
}

struct job {
  int number;
  double seconds;
};

static void *worker(void *argument) {
  const struct job *job = argument;
  char name[16];
  snprintf(name, sizeof name, "native-%d", job->number);
  prctl(PR_SET_NAME, name, 0, 0, 0);
  burn_native(job->seconds);
  return NULL;
}

/* Runs `count` (at most 8) threads that each use `seconds` of CPU; returns when they have ended. */
void run_pool(int count, double seconds) {
  pthread_t threads[8];
  struct job jobs[8];
  for (int i = 0; i < count; i++) {
    jobs[i] = (struct job){.number = i, .seconds = seconds};
    pthread_create(&threads[i], NULL, worker, &jobs[i]);
  }
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}
