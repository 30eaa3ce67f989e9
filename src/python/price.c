/* SPDX-License-Identifier: Apache-2.0 */
#include "python/price.h"

#include "python/api.h"
#include "python/calibrate.h"
#include "python/local.h"
#include "python/state.h"

enum {
  CALLS = 256, /* as in the snippet */
  EVENTS = CALLS * 2,
  REPEATS = 5,
};

static const char snippet[] = "def called():\n"
                              "    return 0\n"
                              "def run():\n"
                              "    for _ in range(256):\n"
                              "        called()\n";

/* What an event was seen to cost where nothing could be timed. */
static const double usual_ns = 25.0;

/*
 * An event of a real program to one of the snippet, whose code and data are always near:
 * geometric mean of nine loads, 1.04 to 1.44 (bench/cost/truth.py, docs/performance.md).
 */
static const double real_program = 1.25;

static struct {
  PyObject *names, *run; /* between begin and end */
  uint64_t without_ns;
  double event_ns; /* 0: not known */
} price;

double pm__python_event_ns(void) { return price.event_ns > 0 ? price.event_ns : usual_ns; }

static void drop(void) {
  if (price.names != NULL) pm__api.PyDict_Clear(price.names);
  pm__api_release(price.run);
  pm__api_release(price.names);
  price.run = price.names = NULL;
  pm__calibrate_drop_exception();
}

static void make(void) {
  price.names = pm__api_new_names();
  PyObject *code = pm__api.Py_CompileString(snippet, "<pyrometer>", PM_COMPILE_FILE);
  PyObject *done = price.names == NULL || code == NULL
                       ? NULL
                       : pm__api.PyEval_EvalCode(code, price.names, price.names);
  if (done != NULL) price.run = pm__api_dict_get_string(price.names, "run");
  pm__api_release(done);
  pm__api_release(code);
}

/* The shortest of some runs; 0 when one has failed. */
static uint64_t time_run(void) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < REPEATS; i++) {
    uint64_t begin = pm__clock_thread_self();
    PyObject *done = pm__api.PyObject_CallNoArgs(price.run);
    uint64_t took = pm__clock_thread_self() - begin;
    if (done == NULL) return 0;
    pm__api_release(done);
    if (took < least) least = took;
  }
  return least;
}

void pm__price_begin(void) {
  if (price.event_ns > 0) return;
  make();
  price.without_ns = price.run == NULL ? 0 : time_run();
  if (price.without_ns == 0) drop();
}

/* The timed events are none of the program's. */
void pm__price_end(void) {
  if (price.run == NULL) return;
  struct pm_python_thread *thread = pm__local_self;
  struct pm_shadow *shadow = thread == NULL ? NULL : thread->shadow;
  if (shadow != NULL) {
    uint64_t before[PM_EVENT_KINDS];
    for (int i = 0; i < PM_EVENT_KINDS; i++) before[i] = atomic_load(&shadow->events[i]);
    uint64_t with_ns = time_run();
    for (int i = 0; i < PM_EVENT_KINDS; i++) atomic_store(&shadow->events[i], before[i]);
    if (with_ns > price.without_ns) {
      price.event_ns = (double)(with_ns - price.without_ns) / EVENTS * real_program;
    }
  }
  drop();
}

void pm__price_orphan(void) { price.run = price.names = NULL; }
