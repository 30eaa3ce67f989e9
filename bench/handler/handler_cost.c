/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a native walk costs inside a signal handler, against libunwind and glibc's
 * backtrace() in the same run; and what the tables cost. Arguments: libraries to
 * load, for the tables. Exit status 1 when the requirement is missed: at a depth
 * of about 30 at most 5 us in the median, and four times as fast as either.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "measure.h"
#include "stacks.h"
#include "tables.h"

enum { WARM_UP = 3 * METHODS, SAMPLES = 400 * METHODS };

static unsigned samples;

static void sample(void) {
  for (unsigned i = 0; i < samples; i++) raise(SIGPROF);
}

static double worst_us, least_ratio = 1e9;

static double median_of(struct measured *measured, enum walker walker, enum condition condition) {
  return measure_quantile(measured, method_of(walker, condition), 0.5);
}

static void judge(struct measured *measured) {
  for (enum condition condition = WARM; condition < CONDITIONS; condition++) {
    double ours = median_of(measured, OURS, condition);
    if (ours / 1000 > worst_us) worst_us = ours / 1000;
    for (enum walker other = LIBUNWIND; other < WALKERS; other++) {
      double ratio = median_of(measured, other, condition) / ours;
      if (ratio < least_ratio) least_ratio = ratio;
    }
  }
}

static void run(const char *name, void (*stack)(int, void (*)(void)), int depth, bool required) {
  static struct measured measured;
  memset(&measured, 0, sizeof measured);
  measure_into(NULL);
  samples = WARM_UP;
  stack(depth, sample);
  measure_into(&measured);
  samples = SAMPLES;
  stack(depth, sample);
  measure_into(NULL);
  measure_report(name, &measured);
  if (required) judge(&measured);
}

static void *in_thread(void *unused) {
  (void)unused;
  run("recursion in a thread, about 30 frames", stack_recursion, 24, true);
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t thread;
  for (int i = 1; i < count; i++)
    if (!dlopen(arguments[i], RTLD_LAZY)) printf("not loaded: %s\n", arguments[i]);
  measure_begin();
  measure_on(SIGPROF);
  run("recursion, about 10 frames", stack_recursion, 3, false);
  run("recursion, about 30 frames", stack_recursion, 23, true);
  run("recursion, about 170 frames", stack_recursion, 163, false);
  run("mixed with library callbacks, about 30 frames", stack_mixed, 24, true);
  pthread_create(&thread, NULL, in_thread, NULL);
  pthread_join(thread, NULL);
  tables_report();
  measure_end();
  bool good = worst_us <= 5 && least_ratio >= 4;
  printf("\nabout 30 frames: median at most %.2f us (allowed 5), at least %.1f x as fast (required "
         "4): %s\n",
         worst_us, least_ratio, good ? "holds" : "MISSED");
  return !good;
}
