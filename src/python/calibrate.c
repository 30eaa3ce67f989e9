/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where is the interpreter's frame, when nothing may be assumed of its symbols?
 *
 * Between the event that begins a run of a Python frame (START, RESUME, THROW)
 * and the one that ends it (RETURN, YIELD, UNWIND) the native frames outside the
 * interpreter's stand still in the call they are in: same CFA, same pc. The
 * interpreter's own frame stands too, but has called the callback from another
 * place: same CFA, other pc. So of the frames with equal CFA in both walks, the
 * outermost whose pc differs is the interpreter. That holds for loops that are
 * split in parts and for tail-call interpreters, whose functions take over the
 * CFA of the one they follow. Its CFA less the callback's is the distance of
 * both kinds of event. Many such pairs, under different callers, must agree.
 */
#include "python/calibrate.h"

#include <pthread.h>
#include <stdlib.h>

#include "python/record.h"
#include "python/roles.h"
#include "python/state.h"
#include "python/untold_learn.h"

enum {
  PAIRS_MIN = 2, /* of each kind, else its distance is not believed */
  NESTING = 32,
};

/* Every kind of event, under callers as unlike as possible, without a trace left behind. */
static const char snippet[] = "def leaf(*a):\n"
                              "    return 0\n"
                              "def fail(*a):\n"
                              "    raise KeyError\n"
                              "def inner(*a):\n"
                              "    return leaf(leaf())\n"
                              "def gen():\n"
                              "    while True:\n"
                              "        try:\n"
                              "            yield 1\n"
                              "        except KeyError:\n"
                              "            inner()\n"
                              "def once():\n"
                              "    yield inner()\n"
                              "def caught(call, *a):\n"
                              "    try:\n"
                              "        call(*a)\n"
                              "    except (KeyError, StopIteration):\n"
                              "        pass\n"
                              "list(map(leaf, (1,)))\n"
                              "sorted((2, 1), key=inner)\n"
                              "max((1, 2), key=leaf)\n"
                              "list(filter(inner, (1,)))\n"
                              "next(iter(inner, 1))\n"
                              "inner()\n"
                              "caught(fail)\n"
                              "caught(list, map(fail, (1,)))\n"
                              "caught(lambda: max((1, 2), key=fail))\n"
                              "caught(lambda: sorted((1, 2), key=fail))\n"
                              "list(once())\n"
                              "g = gen()\n"
                              "next(g)\n"
                              "next(g)\n"
                              "g.send(1)\n"
                              "g.throw(KeyError)\n"
                              "max(next(g), next(g))\n"
                              "for x in g:\n"
                              "    break\n"
                              "g.throw(KeyError)\n"
                              "g.close()\n"
                              "h = once()\n"
                              "next(h)\n"
                              "caught(h.throw, KeyError)\n"
                              "h = once()\n"
                              "list(map(next, (h,)))\n"
                              "caught(h.throw, KeyError)\n"
                              "h = once()\n"
                              "any(h)\n"
                              "caught(next, h)\n";

/*
 * Owner:    the calibrating thread.
 * Readers:  itself; other threads read `thread` and go.
 * Ordering: set before the phase says PM_PHASE_CALIBRATING, on a thread whose
 *           events then all come from the same thread.
 */
static struct {
  pthread_t thread;
  bool recording;
  bool trying; /* the snippet of untold_learn.c runs */
  struct pm_event_log log;
  bool contradicted[PM_EVENT_KINDS];
  uint32_t pairs[PM_EVENT_KINDS];
} run;

void pm__calibrate_event(enum pm_event kind, const void *code, uintptr_t address) {
  if (!run.recording || !pthread_equal(run.thread, pthread_self())) return;
  if (run.log.count == PM_EVENT_RECORDS) return;
  struct pm_event_record *record = &run.log.records[run.log.count++];
  *record = (struct pm_event_record){.kind = kind, .code = code, .address = address};
  pm__record_walk(record);
  if (run.trying) pm__untold_event(record);
}

/* The CFA of the interpreter frame that raised both events; 0 when the walks do not show it. */
static uint64_t interpreter_of(const struct pm_event_record *a, const struct pm_event_record *b) {
  uint32_t i = 0, j = 0;
  uint64_t found = 0;
  while (i < a->count && j < b->count) {
    if (a->frames[i].cfa < b->frames[j].cfa) {
      i++;
    } else if (a->frames[i].cfa > b->frames[j].cfa) {
      j++;
    } else {
      if (a->frames[i].pc != b->frames[j].pc) found = a->frames[i].cfa;
      i++, j++;
    }
  }
  return found;
}

static void believe(const struct pm_event_record *record, uint64_t cfa) {
  uintptr_t *distance = &pm__python_session.distance[record->kind];
  uintptr_t measured = (uintptr_t)cfa - record->address;
  run.pairs[record->kind]++;
  if (*distance == 0) *distance = measured;
  if (*distance != measured) run.contradicted[record->kind] = true;
}

/* The records of one run of a frame nest like the frames do. */
static void match_pairs(void) {
  const struct pm_event_record *open[NESTING];
  uint32_t depth = 0;
  for (uint32_t i = 0; i < run.log.count; i++) {
    const struct pm_event_record *record = &run.log.records[i];
    if (record->kind <= PM_EVENT_THROW) {
      if (depth == NESTING) return;
      open[depth++] = record;
    } else if (depth > 0 && open[depth - 1]->code == record->code) {
      const struct pm_event_record *begin = open[--depth];
      uint64_t cfa = interpreter_of(begin, record);
      if (cfa <= record->address || cfa <= begin->address) continue;
      believe(begin, cfa);
      believe(record, cfa);
    }
  }
}

/* In every event seen, paired or not, the mark must be a frame of the native stack. */
static void verify(void) {
  const uintptr_t *distance = pm__python_session.distance;
  for (uint32_t i = 0; i < run.log.count; i++) {
    const struct pm_event_record *record = &run.log.records[i];
    uint64_t mark = record->address + distance[record->kind];
    if (pm__record_index(record, mark) == record->count) run.contradicted[record->kind] = true;
  }
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    if (run.contradicted[kind] || run.pairs[kind] < PAIRS_MIN)
      pm__python_session.distance[kind] = 0;
  }
}

static void add_role(const struct pm_event_record *record, uint32_t index,
                     enum pm_native_role role) {
  uintptr_t start = 0;
  if (pm__record_function(record, index, &start)) pm__roles_add(start, role);
}

/* What stands between the callback and the interpreter dispatches events. */
static void learn_dispatch(const struct pm_event_record *record, uint64_t mark) {
  uint32_t interpreter = pm__record_index(record, mark);
  for (uint32_t i = pm__record_index(record, record->address) + 1; i < interpreter; i++) {
    add_role(record, i, PM_ROLE_DISPATCH);
  }
}

/*
 * The marks of all frames that stand are interpreter frames of the walk. The
 * outer ones stand in calls: a split loop may have those in another part.
 */
static void learn_interpreters(const struct pm_event_record *record, const uint64_t *marks,
                               uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t index = pm__record_index(record, marks[i]);
    if (index < record->count) add_role(record, index, PM_ROLE_INTERPRETER);
  }
}

static void learn_roles(void) {
  uint64_t marks[NESTING];
  uint32_t depth = 0;
  for (uint32_t i = 0; i < run.log.count; i++) {
    const struct pm_event_record *record = &run.log.records[i];
    uintptr_t distance = pm__python_session.distance[record->kind];
    bool entering = record->kind <= PM_EVENT_THROW;
    if (distance == 0 || (entering ? depth == NESTING : depth == 0)) return;
    learn_dispatch(record, record->address + distance);
    if (entering) marks[depth++] = record->address + distance;
    learn_interpreters(record, marks, depth);
    if (!entering) depth--;
  }
}

/*
 * At the edge of the stack or of memory our few lines fail like any others would, and so
 * they do where the program has taken a builtin away or put its own in the place.
 */
static bool is_from_snippet(PyObject *exception) {
  void *const own[] = {pm__api.PyExc_RecursionError, pm__api.PyExc_MemoryError,
                       pm__api.PyExc_NameError, pm__api.PyExc_TypeError};
  for (size_t i = 0; i < PM_COUNT_OF(own); i++) {
    if (pm__api.PyErr_GivenExceptionMatches(exception, *(PyObject **)own[i])) return true;
  }
  return false;
}

/* Ctrl-C, or another signal's handler, may hit our lines instead of the program's: raised again there. */
void pm__calibrate_drop_exception(void) {
  PyObject *exception = pm__api.PyErr_GetRaisedException();
  if (exception == NULL) return;
  if (!is_from_snippet(exception)) {
    PyObject *type = pm__api.PyObject_Type(exception);
    pm__api.PyThreadState_SetAsyncExc(pm__api.PyThread_get_thread_ident(), type);
    pm__api_release(type);
  }
  pm__api.Py_DecRef(exception);
}

static bool run_source(const char *source, PyObject *names) {
  PyObject *code = pm__api.Py_CompileString(source, "<pyrometer>", PM_COMPILE_FILE);
  run.recording = true;
  PyObject *result = code == NULL ? NULL : pm__api.PyEval_EvalCode(code, names, names);
  run.recording = false;
  pm__calibrate_drop_exception();
  pm__api_release(code);
  pm__api_release(result);
  return result != NULL;
}

static void run_snippet(void) {
  PyObject *names = pm__api_new_names();
  if (names != NULL) {
    if (run_source(snippet, names)) {
      const char *more = pm__untold_prepare(names, &run.log);
      run.trying = true;
      if (more != NULL) run_source(more, names);
      run.trying = false;
      pm__untold_finish();
    }
    /* The functions and their namespace hold each other: this leaves nothing to the collector. */
    pm__api.PyDict_Clear(names);
  }
  pm__api_release(names);
  pm__calibrate_drop_exception();
}

/* The distances belong to the build of the interpreter: once known, they hold. */
static bool is_known(void) {
  bool all = true;
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    all = all && pm__python_session.distance[kind] != 0;
  }
  return all;
}

void pm__calibrate_forget(void) {
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    pm__python_session.distance[kind] = 0;
    run.contradicted[kind] = false;
    run.pairs[kind] = 0;
  }
  run.log.count = 0;
  pm__roles_clear();
}

void pm__calibrate_run(void) {
  const struct pm_python_hooks *hooks = &pm__python_session.hooks;
  if (is_known()) return;
  pm__calibrate_forget();
  if (hooks->walk_here == NULL || hooks->function_at == NULL) return;
  run.log.records = calloc(PM_EVENT_RECORDS, sizeof *run.log.records);
  if (run.log.records == NULL) return;
  run.thread = pthread_self();
  run_snippet();
  match_pairs();
  verify();
  learn_roles();
  pm__untold_conclude();
  free(run.log.records);
  run.log.records = NULL;
}
