/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cold path of the callbacks: a thread's first event of a session, codes not
 * met before, deep stacks, stacks that do not match. It may allocate and call
 * Python's C API, but runs no Python code.
 */
#include "python/cold.h"

#include <string.h>

#include "python/calibrate.h"
#include "python/local.h"
#include "python/marks.h"
#include "python/names.h"
#include "python/seed.h"
#include "python/stack.h"
#include "python/state.h"

struct event {
  enum pm_event kind;
  PyObject *code;
  uint64_t mark;
};

static bool is_entering(enum pm_event kind) { return kind <= PM_EVENT_THROW; }

/* Forgets what another session left in the block. */
static void adopt(struct pm_python_thread *thread, uint32_t live) {
  const struct pm_python_session *session = &pm__python_session;
  thread->hot = 0;
  memset(thread->cache, 0, sizeof thread->cache);
  memcpy(thread->distance, session->distance, sizeof thread->distance);
  thread->session = live;
  thread->shadow =
      session->hooks.shadow_of_caller == NULL ? NULL : session->hooks.shadow_of_caller();
}

/* Makes the caller's block one of the running session. NULL: nothing to do for this event. */
static struct pm_python_thread *enrol(uint32_t live, bool *fresh) {
  struct pm_python_thread *thread = pm__local_own();
  if (thread == NULL) {
    pm__python_count_failure();
    return NULL;
  }
  *fresh = thread->session != live;
  if (*fresh) adopt(thread, live);
  return thread;
}

static void push(struct pm_python_thread *thread, const struct event *event, uint32_t id) {
  struct pm_shadow_frame frame = {.code = id, .flags = 0, .mark = event->mark};
  thread->codes[pm__stack_push(thread->shadow, frame)] = event->code;
}

/* Pops the event's frame, which is the top, and keeps the innermost frames visible. */
static void pop(struct pm_python_thread *thread, const struct event *event) {
  pm__stack_pop(thread->shadow);
  if (pm__stack_tail_is_lost(thread->shadow)) pm__seed_refill(thread, event->code);
}

/* The shadow as the frames say. Without frames, the event alone is believed. */
static void walk(struct pm_python_thread *thread, const struct event *event, uint32_t id,
                 bool fresh) {
  bool entering = is_entering(event->kind);
  struct pm_seed_event seed = {.code = event->code, .mark = event->mark, .entering = entering};
  enum pm_seed_result result = pm__seed_self(thread, seed, fresh);
  if (result == PM_SEED_NO_FRAMES && fresh) pm__seed_empty(thread);
  if (entering && result != PM_SEED_DONE) push(thread, event, id);
  if (!entering && pm__local_top_is(thread, event->code)) pop(thread, event);
  thread->doubtful = false;
  thread->hot = thread->session;
}

/* The frame whose globals name the module of the event's code, if Python runs it at all. */
static struct pm_code_entry *register_event(struct pm_python_thread *thread, PyObject *code) {
  PyObject *frame = pm__api.PyEval_GetFrame(); /* borrowed */
  PyObject *top = frame == NULL ? NULL : pm__api.PyFrame_GetCode(frame);
  struct pm_code_entry *entry = pm__seed_entry(thread, code, top == code ? frame : NULL);
  pm__api_release(top);
  return entry;
}

static uint32_t id_of_event(struct pm_python_thread *thread, const struct event *event) {
  struct pm_code_entry *entry = pm__local_entry(thread, event->code);
  if (entry->code == event->code) {
    pm__stack_count(&thread->cache_hits);
  } else {
    entry = register_event(thread, event->code);
  }
  if (event->kind == PM_EVENT_START) pm__stack_count(entry->calls);
  return entry->id;
}

static void change(struct pm_python_thread *thread, const struct event *event, uint32_t id,
                   bool fresh) {
  bool entering = is_entering(event->kind);
  if (fresh || thread->doubtful || event->kind == PM_EVENT_THROW ||
      (!entering && !pm__local_top_is(thread, event->code))) {
    walk(thread, event, id, fresh);
  } else if (entering) {
    push(thread, event, id);
  } else {
    pop(thread, event);
  }
}

static void apply(struct pm_python_thread *thread, const struct event *event, bool fresh) {
  uint32_t id = is_entering(event->kind) ? id_of_event(thread, event) : 0;
  struct pm_shadow *shadow = thread->shadow;
  if (shadow == NULL) return; /* beyond max_threads: its calls are counted all the same */
  pm__stack_count(&shadow->events[event->kind]);
  uint32_t asked = atomic_exchange_explicit(&shadow->attention, 0, memory_order_relaxed);
  if ((asked & PM_ATTENTION_NAME) && !fresh) pm__names_tell_own(thread->tid, NULL);
  change(thread, event, id, fresh);
  if ((asked & PM_ATTENTION_MARKS) || fresh) pm__marks_complete(shadow);
}

static void take(enum pm_event kind, PyObject *code, uintptr_t address, uint32_t live) {
  bool fresh = false;
  PyObject *exception = pm__api_save_exception();
  struct pm_python_thread *thread = enrol(live, &fresh);
  if (thread != NULL) {
    uintptr_t distance = thread->distance[kind];
    struct event event = {
        .kind = kind, .code = code, .mark = distance == 0 ? 0 : address + distance};
    apply(thread, &event, fresh);
  }
  pm__api_restore_exception(exception);
}

PyObject *pm__cold_event(enum pm_event kind, PyObject *code, uintptr_t address) {
  struct pm_python_session *session = &pm__python_session;
  uint32_t live = atomic_load_explicit(&session->live, memory_order_acquire);
  if (live != 0) {
    take(kind, code, address, live);
  } else if (atomic_load_explicit(&session->phase, memory_order_relaxed) == PM_PHASE_CALIBRATING) {
    pm__calibrate_event(kind, code, address);
  }
  return pm__api_none();
}

void pm__cold_seed_caller(void) {
  bool fresh = false;
  uint32_t live = atomic_load_explicit(&pm__python_session.live, memory_order_acquire);
  struct pm_python_thread *thread = enrol(live, &fresh);
  if (thread == NULL || thread->shadow == NULL) return;
  struct pm_seed_event none = {0};
  if (pm__seed_self(thread, none, true) == PM_SEED_NO_FRAMES) pm__seed_empty(thread);
  pm__marks_complete(thread->shadow);
  thread->hot = thread->session;
}
