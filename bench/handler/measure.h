/* SPDX-License-Identifier: Apache-2.0 */
/* Times one walk of the interrupted stack inside a signal handler, by several methods in turn. */
#ifndef PM_BENCH_MEASURE_H
#define PM_BENCH_MEASURE_H

#include "base/base.h"

/* Three walkers, each under three conditions; and ours without its pc cache. */
enum walker { OURS, LIBUNWIND, BACKTRACE, WALKERS };
enum condition {
  WARM,    /* behind another walk of the same stack */
  AS_LEFT, /* as the program and the last sample left the caches */
  COLD,    /* 8 MB of other memory were used before */
  CONDITIONS
};
enum { METHODS = WALKERS * CONDITIONS + 1, PC_CACHE_EMPTY = METHODS - 1 };

static inline unsigned method_of(enum walker walker, enum condition condition) {
  return walker * CONDITIONS + condition;
}

enum { MEASURED_MAX = 4096 };

/* Results of one load. */
struct measured {
  uint32_t count[METHODS];
  float ns[METHODS][MEASURED_MAX];
  uint32_t depth[METHODS]; /* frames of the last walk */
  uint32_t incomplete;     /* our walks that did not reach the root */
};

/* Builds the tables, warms libunwind and backtrace() up and measures the clock itself. */
void measure_begin(void);
void measure_end(void);

/* Where results go from now on. */
void measure_into(struct measured *measured);

/* Walks by the next method in turn. For a handler. */
void measure_sample(const void *ucontext);

/* Installs measure_sample as the handler of `number`. */
void measure_on(int number);

/* The q-th part (0 to 1) of the times of `method`; sorts them. */
double measure_quantile(struct measured *measured, unsigned method, double q);

/* Prints one line a method, and the ratios. */
void measure_report(const char *load, struct measured *measured);

#endif /* PM_BENCH_MEASURE_H */
