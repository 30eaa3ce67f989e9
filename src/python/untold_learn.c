/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doorstep: an exception from outside (PyThreadState_SetAsyncExc) is thrown
 * while `late` returns, so that it arrives as `never` is entered. Its type is ours,
 * and walks the native stack when the exception is made.
 *
 * throw(): a generator delegates to an object whose throw method is in Python.
 */
#include "python/untold_learn.h"

#include <string.h>

#include "python/callable.h"
#include "python/seed.h"
#include "python/state.h"

static const char snippet[] = "def late():\n"
                              "    throw_soon()\n"
                              "def never(a):\n"
                              "    pass\n"
                              "try:\n"
                              "    never(late())\n"
                              "except Late:\n"
                              "    pass\n"
                              "stream.throw = fail\n"
                              "def over():\n"
                              "    yield from stream\n"
                              "def through():\n"
                              "    yield from once()\n"
                              "def throw(make):\n"
                              "    g = make()\n"
                              "    next(g)\n"
                              "    watch_next(leaf())\n"
                              "    g.throw(KeyError)\n"
                              "caught(throw, over)\n"
                              "caught(throw, through)\n";

/*
 * Owner:    the calibrating thread.
 * Readers:  itself.
 * Ordering: none needed.
 */
static struct {
  PyObject *late; /* the exception's type; kept while the interpreter lives */
  const struct pm_event_log *log;
  bool armed;                /* to be thrown at the next RETURN */
  bool thrown;               /* not made yet */
  struct pm_event_record made; /* the stack under its making */
  uint32_t made_at;          /* records before that, 0: not made */
  uint32_t watched[2], watched_count; /* records before each watch_next */
} trial;

/* tp_init of the exception. */
static int on_making(PyObject *self, PyObject *args, PyObject *keywords) {
  (void)self, (void)args, (void)keywords;
  if (!trial.thrown) return 0;
  trial.thrown = false;
  trial.made_at = trial.log->count;
  pm__record_walk(&trial.made);
  return 0;
}

/* A RecursionError, for those are dropped wherever they come out of calibration. */
static PyObject *late_type(void) {
  if (trial.late != NULL) return trial.late;
  int (*function)(PyObject *, PyObject *, PyObject *) = on_making;
  void *init = NULL;
  memcpy(&init, &function, sizeof init);
  struct pm_type_slot slots[] = {{PM_SLOT_TP_INIT, init}, {0, NULL}};
  struct pm_type_spec spec = {
      .name = "pyrometer.Late", .flags = PM_TYPE_FLAGS_PLAIN, .slots = slots};
  trial.late = pm__api.PyType_FromSpecWithBases(&spec, *(PyObject **)pm__api.PyExc_RecursionError);
  pm__api.PyErr_Clear();
  return trial.late;
}

/* throw_soon(), for the snippet. */
static PyObject *throw_soon(PyObject *callable, PyObject *const *args, size_t nargsf,
                            PyObject *kwnames) {
  (void)callable, (void)args, (void)nargsf, (void)kwnames;
  trial.armed = true;
  return pm__api_none();
}

/* watch_next(), likewise: the next event is the one. */
static PyObject *watch_next(PyObject *callable, PyObject *const *args, size_t nargsf,
                            PyObject *kwnames) {
  (void)callable, (void)args, (void)nargsf, (void)kwnames;
  if (trial.watched_count < PM_COUNT_OF(trial.watched)) {
    trial.watched[trial.watched_count++] = trial.log->count;
  }
  return pm__api_none();
}

/* Takes over the reference. False without an object. */
static bool give(PyObject *names, const char *name, PyObject *object) {
  bool given = object != NULL && pm__api.PyDict_SetItemString(names, name, object) == 0;
  pm__api_release(object);
  pm__api.PyErr_Clear();
  return given;
}

/* An iterator that takes attributes of its own, without a class of ours. */
static PyObject *make_stream(void) {
  PyObject *type = pm__api_module_item("_io", "StringIO");
  PyObject *text = pm__api.PyUnicode_FromString("1\n2\n");
  bool good = type != NULL && text != NULL;
  PyObject *stream = good ? pm__api.PyObject_CallOneArg(type, text) : NULL;
  pm__api_release(type);
  pm__api_release(text);
  return stream;
}

const char *pm__untold_prepare(PyObject *names, const struct pm_event_log *log) {
  trial.log = log;
  trial.armed = trial.thrown = false;
  trial.made_at = trial.watched_count = 0;
  PyObject *late = late_type();
  if (late != NULL) pm__api.Py_IncRef(late);
  bool all = give(names, "Late", late) && give(names, "stream", make_stream()) &&
             give(names, "throw_soon", pm__callable_new(throw_soon)) &&
             give(names, "watch_next", pm__callable_new(watch_next));
  return all ? snippet : NULL;
}

static void throw_from_outside(PyObject *exception) {
  pm__api.PyThreadState_SetAsyncExc(pm__api.PyThread_get_thread_ident(), exception);
}

void pm__untold_event(struct pm_event_record *record) {
  uint32_t at = trial.log->count - 1;
  if (trial.watched_count > 0 && trial.watched[trial.watched_count - 1] == at) {
    record->parent = pm__seed_parent();
  }
  if (!trial.armed || record->kind != PM_EVENT_RETURN) return;
  trial.armed = false;
  trial.thrown = true;
  throw_from_outside(trial.late);
}

void pm__untold_finish(void) {
  if (trial.thrown) throw_from_outside(NULL);
  trial.armed = trial.thrown = false;
}

static void learn(enum pm_untold_place place, const struct pm_event_record *record,
                  uint32_t index) {
  const struct pm_event_frame *frame = &record->frames[index];
  if (index >= record->count || frame->slot == 0) return;
  pm__untold_learn(&pm__python_session.untold, place, (uintptr_t)frame->slot, (uintptr_t)frame->pc);
}

static uint64_t mark_of(const struct pm_event_record *record) {
  return record->address + pm__python_session.distance[record->kind];
}

static bool has_started(const void *code) {
  const struct pm_event_record *records = trial.log->records;
  uint32_t i = 0;
  while (i < trial.log->count && !(records[i].kind == PM_EVENT_START && records[i].code == code)) {
    i++;
  }
  return i < trial.log->count;
}

/* `never` unwound right after the exception was made; if it had not started, that was on its doorstep. */
static void learn_doorstep(void) {
  if (trial.made_at == 0 || trial.made_at >= trial.log->count) return;
  const struct pm_event_record *unwound = &trial.log->records[trial.made_at];
  if (unwound->kind != PM_EVENT_UNWIND || has_started(unwound->code)) return;
  uint64_t cfa = mark_of(unwound);
  uint32_t index = pm__record_index(&trial.made, cfa);
  learn(PM_UNTOLD_DOORSTEP, &trial.made, index);
  if (index < trial.made.count && trial.made.frames[index].slot != 0) {
    pm__python_session.untold.doorstep_below = (uintptr_t)(cfa - trial.made.frames[index].slot);
  }
}

/* The native frames of one throw(): between the frame that was entered and the one that threw. */
struct span {
  const struct pm_event_record *record;
  uint32_t from, to;
};

static struct span span_of(const struct pm_event_record *record, uint64_t outer) {
  return (struct span){.record = record,
                       .from = pm__record_index(record, mark_of(record)) + 1,
                       .to = pm__record_index(record, outer)};
}

/* Is frame `index` in a function that `other` has as well? */
static bool is_common(const struct pm_event_record *record, uint32_t index, struct span other) {
  uintptr_t start = 0, found = 0;
  if (!pm__record_function(record, index, &start)) return false;
  for (uint32_t i = other.from; i < other.to; i++) {
    if (pm__record_function(other.record, i, &found) && found == start) return true;
  }
  return false;
}

/*
 * Thrown into, `over` called the method of what it delegates to, and `through` (a
 * generator) the next throw(): the innermost native function that both have is the
 * one that does such calls. It hides a frame where `over` (its YIELD stands two
 * records before) was found to stand under the method.
 */
static void learn_throw(void) {
  if (trial.watched_count < 2 || trial.watched[1] >= trial.log->count) return;
  const struct pm_event_record *called = &trial.log->records[trial.watched[0]];
  const struct pm_event_record *resumed = &trial.log->records[trial.watched[1]];
  if (called->kind != PM_EVENT_START || resumed->kind != PM_EVENT_THROW) return;
  if (called->parent != called[-3].code) return;
  uint64_t outer = mark_of(&called[-1]); /* `leaf` was called by `throw` */
  struct span inside = span_of(called, outer), other = span_of(resumed, outer);
  uint32_t i = inside.from;
  while (i < inside.to && !is_common(called, i, other)) i++;
  if (i < inside.to) learn(PM_UNTOLD_THROW, called, i);
}

void pm__untold_conclude(void) {
  pm__untold_forget(&pm__python_session.untold);
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    if (pm__python_session.distance[kind] == 0) return;
  }
  learn_doorstep();
  learn_throw();
}

void pm__untold_orphan(void) { trial.late = NULL; }
