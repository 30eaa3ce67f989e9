/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic_cases.c: the odd views that every reader of a view has to stand. */
#include "synthetic_view.h"

#define MS UINT64_C(1000000)

/* All kinds of frame, two threads of one name, a source, a class of two sources. */
static struct synthetic *make_normal(void) {
  struct synthetic *s = synthetic_new(2);
  uint32_t main = synthetic_python(s, "__main__", "<module>", "app.py", 1);
  uint32_t work = synthetic_python(s, "pkg.work", "Engine.run", "pkg/work.py", 88);
  uint32_t other = synthetic_python(s, "pkg.work", "helper", "pkg/work.py", 12);
  uint32_t plug = synthetic_python(s, "plug.a", "tick", "plug/a.py", 5);
  uint32_t sine = synthetic_native(s, "libm.so.6", "sin", 0x1234);
  uint32_t cost = synthetic_pseudo(s, "[pyrometer]");
  uint32_t rest = synthetic_pseudo(s, "(unsampled)");
  s->frames[work].source = "pkg";
  s->frames[other].source = "vendored";
  s->frames[plug].source = "plug";
  s->frames[plug].calls_exact = false;
  synthetic_thread(s, "MainThread", 71);
  synthetic_enter(s, main);
  synthetic_enter(s, work);
  synthetic_burn(s, 0, 100 * MS);
  synthetic_leaf(s, sine, 1, 60 * MS);
  synthetic_leaf(s, plug, 0, 40 * MS);
  synthetic_leave(s);
  synthetic_leaf(s, other, 1, 20 * MS);
  synthetic_leaf(s, cost, 0, 10 * MS);
  synthetic_leave(s);
  synthetic_leaf(s, rest, 1, 7 * MS);
  for (int tid = 72; tid < 74; tid++) {
    synthetic_thread(s, "worker", tid);
    synthetic_enter(s, work);
    synthetic_leaf(s, sine, 0, (uint64_t)tid * MS);
    synthetic_leave(s);
  }
  return s;
}

/* An idle process: a thread without nodes. */
static struct synthetic *make_empty(void) {
  struct synthetic *s = synthetic_new(1);
  synthetic_thread(s, "MainThread", 71);
  return s;
}

/* Nothing at all, and no Python: not even a thread or a diagnosis. */
static struct synthetic *make_nothing(void) {
  struct synthetic *s = synthetic_new(1);
  json_decref(s->view.diagnostics);
  s->view.diagnostics = NULL;
  s->view.python_version = "";
  s->view.python_state = "absent";
  s->view.python_reason = "no interpreter in this process";
  return s;
}

/* 300 threads, 3 of them busy; one that could not be sampled says why. */
static struct synthetic *make_threads(void) {
  struct synthetic *s = synthetic_new(3);
  uint32_t run = synthetic_python(s, "threading", "Thread.run", "threading.py", 1000);
  uint32_t rest = synthetic_pseudo(s, "(unsampled)");
  for (int i = 0; i < 300; i++) {
    const char *name = i % 2 == 0 ? "pool" : synthetic_text(s, "thread-%d", i);
    struct pm_view_thread *thread = synthetic_thread(s, name, 1000 + i);
    if (i < 3) {
      synthetic_leaf(s, run, (uint32_t)i, (uint64_t)(900 - i) * MS);
    } else if (i == 3) {
      thread->reason = "no CPU timer: RLIMIT_SIGPENDING";
      synthetic_leaf(s, rest, 0, 3 * MS);
    }
  }
  return s;
}

/* A recursion `depth` deep: self CPU at each level, and every 100th calls a leaf too. */
static struct synthetic *make_deep(int depth) {
  struct synthetic *s = synthetic_new(2);
  uint32_t main = synthetic_python(s, "__main__", "<module>", "deep.py", 1);
  uint32_t down = synthetic_python(s, "__main__", "down", "deep.py", 2);
  uint32_t leaf = synthetic_python(s, "__main__", "leaf", "deep.py", 9);
  uint32_t once = synthetic_python(s, "__main__", "only_in_the_middle", "deep.py", 20);
  synthetic_thread(s, "MainThread", 71);
  synthetic_enter(s, main);
  for (int i = 1; i < depth; i++) {
    synthetic_enter(s, i == depth / 2 ? once : down);
    synthetic_burn(s, (uint32_t)(i % 2), MS);
  }
  for (int i = depth - 1; i > 0; i--) {
    if (i % 100 == 50 && i < depth - 1) {
      synthetic_leaf(s, leaf, 1, 2 * MS);
    }
    synthetic_leave(s);
  }
  synthetic_leave(s);
  return s;
}

static struct synthetic *make_deep_300(void) { return make_deep(300); }

static struct synthetic *make_deep_301(void) { return make_deep(301); }

static struct synthetic *make_deep_1800(void) { return make_deep(1800); }

/* Text that is not UTF-8, overlong, surrogate, cut short, with separators and breaks. */
static struct synthetic *make_bytes(void) {
  struct synthetic *s = synthetic_new(1);
  uint32_t a = synthetic_python(s, "m\xff", "f;g\nh", "/tmp/\xc0\xaf/\xed\xa0\x80.py", 3);
  uint32_t b = synthetic_native(s, "lib\xe2\x82.so", "s\xf4\x90\x80\x80\x01y\x7f", 0x1010);
  uint32_t c = synthetic_python(s, "caf\xc3\xa9", "\xe6\xb8\xa9\xe5\xba\xa6", "t\xc2\x85.py", 1);
  uint32_t d = synthetic_python(s, "\xf0\x9f\x94\xa5", "u\xe2\x80\xa8v", "\xc3", 1);
  s->frames[a].source = "src\xfe;";
  s->frames[a].category = "cat\r\n";
  s->objects[0].path = "/usr/lib/\x80.so";
  s->view.command = "run\x1b[31m\xff";
  s->view.version = "0\xff";
  s->view.python_reason = "because\n\xff";
  s->view.python_version = "3.\xff";
  struct pm_view_thread *thread = synthetic_thread(s, "t;\xff\n", 5);
  thread->reason = "\xff\xff";
  synthetic_enter(s, a);
  synthetic_leaf(s, b, 0, 20 * MS);
  synthetic_leave(s);
  synthetic_leaf(s, c, 0, 10 * MS);
  synthetic_leaf(s, d, 0, 5 * MS);
  return s;
}

/* An hour of windows, most of them idle. */
static struct synthetic *make_windows(void) {
  struct synthetic *s = synthetic_new(60);
  uint32_t f = synthetic_python(s, "svc", "loop", "svc.py", 4);
  synthetic_thread(s, "MainThread", 71);
  synthetic_enter(s, f);
  for (uint32_t w = 0; w < 60; w += 7) {
    synthetic_burn(s, w, (w + 1) * MS);
  }
  synthetic_leave(s);
  return s;
}

/* Many stacks that each weigh less than a microsecond. */
static struct synthetic *make_rounding(void) {
  struct synthetic *s = synthetic_new(1);
  for (int t = 0; t < 3; t++) {
    synthetic_thread(s, synthetic_text(s, "t%d", t), 10 + t);
    for (int i = 0; i < 1000; i++) {
      const char *name = synthetic_text(s, "f%d", i);
      uint32_t frame = t == 0 ? synthetic_python(s, "m", name, "m.py", 1) : (uint32_t)i;
      synthetic_leaf(s, frame, 0, 333);
    }
  }
  return s;
}

/* Numbers that JavaScript, int32 or a double cannot hold. */
static struct synthetic *make_numbers(void) {
  struct synthetic *s = synthetic_new(2);
  uint32_t f = synthetic_python(s, "m", "f", "m.py", UINT32_MAX);
  s->frames[f].calls = UINT64_MAX;
  s->windows[1].end_ms = INT64_MAX / 4;
  s->view.overhead_pct = __builtin_nan("");
  s->view.rate_hz = 0;
  synthetic_thread(s, "MainThread", 71)->samples = 0;
  synthetic_leaf(s, f, 0, UINT64_C(1) << 62);
  return s;
}

static void add_level(struct synthetic *s, uint32_t *frame, uint32_t level, uint32_t fan) {
  for (uint32_t i = 0; i < fan; i++) {
    synthetic_enter(s, (*frame)++ % s->view.frame_count);
    synthetic_burn(s, *frame % s->view.window_count, 1000 + *frame);
    if (level > 1) {
      add_level(s, frame, level - 1, fan);
    }
    synthetic_leave(s);
  }
}

/* 111,110 nodes and 10 windows, in one thread. */
static struct synthetic *make_large(void) {
  struct synthetic *s = synthetic_new(10);
  for (uint32_t i = 0; i < 5003; i++) {
    synthetic_python(s, synthetic_text(s, "package.module%u", i % 97),
                     synthetic_text(s, "Class%u.method%u", i % 53, i), "package/module.py", i);
  }
  uint32_t frame = 0;
  synthetic_thread(s, "MainThread", 71);
  add_level(s, &frame, 5, 10);
  return s;
}

const struct synthetic_case synthetic_cases[] = {
    {"normal", make_normal},      {"empty", make_empty},      {"nothing", make_nothing},
    {"threads", make_threads},    {"deep300", make_deep_300}, {"deep301", make_deep_301},
    {"deep1800", make_deep_1800}, {"bytes", make_bytes},      {"windows", make_windows},
    {"rounding", make_rounding},  {"numbers", make_numbers},  {"large", make_large},
};
const size_t synthetic_case_count = PM_COUNT_OF(synthetic_cases);
