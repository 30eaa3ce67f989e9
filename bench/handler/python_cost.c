/* SPDX-License-Identifier: Apache-2.0 */
/* The measurement for a Python process: python_cost.py loads this with ctypes. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "measure.h"
#include "tables.h"
#include "unwind/unwind.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void cost_begin(void);
EXPORTED void cost_start(void);
EXPORTED void cost_stop(const char *load);
EXPORTED void cost_tables(void);

static struct measured measured;

static void tick(long microseconds) {
  struct itimerval timer = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_PROF, &timer, NULL);
}

EXPORTED void cost_begin(void) {
  measure_begin();
  measure_on(SIGPROF);
}

EXPORTED void cost_start(void) {
  pm__unwind_refresh();
  memset(&measured, 0, sizeof measured);
  measure_into(&measured);
  tick(1000);
}

EXPORTED void cost_stop(const char *load) {
  tick(0);
  measure_into(NULL);
  measure_report(load, &measured);
}

EXPORTED void cost_tables(void) { tables_report(); }
