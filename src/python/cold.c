/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cold path of the callbacks: a thread's first event of a session, codes not
 * met before, deep stacks, stacks that do not match. It may allocate and call
 * Python's C API, but runs no Python code.
 */
#include "python/cold.h"

#include <string.h>

#include "python/calibrate.h"
#include "python/handover.h"
#include "python/local.h"
#include "python/marks.h"
#include "python/names.h"
#include "python/seed.h"
#include "python/stack.h"
#include "python/state.h"

struct event {
  enum pm_event kind;
  PyObject *code;
  PyObject *offset; /* of the instruction, an int */
  uint64_t mark;
};

static bool is_entering(enum pm_event kind) { return kind <= PM_EVENT_THROW; }

/* Forgets what another session left in the block. */
static void adopt(struct pm_python_thread *thread, uint32_t live) {
  const struct pm_python_session *session = &pm__python_session;
  thread->hot = PM_HOT_NEVER;
  pm__entries_clear(&thread->entries);
  memcpy(thread->distance, session->distance, sizeof thread->distance);
  thread->framed = -1;
  for (int kind = 0; is_entering(kind); kind++) {
    if (thread->distance[kind] == 0) thread->framed = 0;
  }
  thread->untold = session->untold;
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

static bool top_is(const struct pm_python_thread *thread, const struct event *event) {
  return pm__local_is(pm__local_top(thread), event->code);
}

static bool top_is_passed(const struct pm_shadow *shadow) {
  uint32_t depth = pm__stack_depth(shadow);
  return depth > 0 && pm__stack_holds(shadow, depth - 1) &&
         (shadow->frames[pm__stack_slot(depth - 1)].flags & PM_SHADOW_PASSED) != 0;
}

/*
 * A frame has left that stood on frames without events. What it yields after a
 * THROW goes past its awaiters, straight to whoever threw; whatever else may be,
 * the next event will show.
 */
static void leave_uneasy(struct pm_python_thread *thread, enum pm_event kind) {
  while (kind == PM_EVENT_YIELD && top_is_passed(thread->shadow)) pm__stack_pop(thread->shadow);
  thread->doubtful = true;
  thread->hot = PM_HOT_NEVER;
}

/* Pops the event's frame, which is the top, and keeps the innermost frames visible. */
static void pop(struct pm_python_thread *thread, const struct event *event) {
  bool uneasy = pm__local_top(thread) != event->code;
  pm__stack_pop(thread->shadow);
  if (uneasy) {
    leave_uneasy(thread, event->kind);
  } else if (pm__stack_tail_is_lost(thread->shadow)) {
    pm__seed_refill(thread, event->code);
  }
}

/* The shadow as the frames say. Without frames, the event alone is believed. */
static void walk(struct pm_python_thread *thread, const struct event *event, uint32_t id,
                 bool fresh) {
  bool entering = is_entering(event->kind);
  struct pm_seed_event seed = {.code = event->code,
                               .mark = event->mark,
                               .entering = entering,
                               .thrown = event->kind == PM_EVENT_THROW};
  enum pm_seed_result result = pm__seed_self(thread, seed, fresh);
  thread->doubtful = false;
  thread->hot = thread->session;
  if (result == PM_SEED_NO_FRAMES && fresh) pm__seed_empty(thread);
  if (entering && result != PM_SEED_DONE) push(thread, event, id);
  if (!entering && top_is(thread, event)) pop(thread, event);
}

/* The frame whose globals name the module of the event's code, if Python runs it at all. */
static struct pm_code_entry *register_event(struct pm_python_thread *thread, PyObject *code) {
  PyObject *frame = pm__api.PyEval_GetFrame(); /* borrowed */
  PyObject *top = frame == NULL ? NULL : pm__api.PyFrame_GetCode(frame);
  struct pm_code_entry *entry = pm__seed_entry(thread, code, top == code ? frame : NULL);
  if (top != code) entry->framed = 0;
  pm__api_release(top);
  return entry;
}

/* The id of an entering event's code; the event keeps its mark only if a frame runs it. */
static uint32_t id_of_event(struct pm_python_thread *thread, struct event *event) {
  struct pm_code_entry *entry = pm__entries_find(&thread->entries, event->code);
  if (entry == NULL) {
    if (thread->shadow != NULL) pm__stack_count(&thread->missed);
    entry = register_event(thread, event->code);
  }
  if (event->kind == PM_EVENT_START) {
    entry->start = (int32_t)pm__api.PyLong_AsLong(event->offset);
    pm__stack_count(entry->calls);
  }
  if (entry->framed == 0) event->mark = 0;
  return entry->id;
}

/*
 * The exception of a tracer may have taken the place of the top's own UNWIND. The frame that
 * unwinds now may be the one below, which runs the same code.
 */
static bool top_may_be_gone(struct pm_python_thread *thread, const struct event *event) {
  return event->kind == PM_EVENT_UNWIND && !pm__local_runs_top(thread, event->mark);
}

/*
 * The frame that unwinds may never have entered: where a tracer, another tool or
 * (from 3.13 on) a signal raises an exception just before our START or RESUME, there
 * is none. Only where a code calls itself can the top of the stack hide that.
 */
static bool may_be_untold(struct pm_python_thread *thread, const struct event *event) {
  if (event->kind != PM_EVENT_UNWIND) return false;
  const struct pm_code_entry *entry = pm__entries_find(&thread->entries, event->code);
  long offset = pm__api.PyLong_AsLong(event->offset);
  if (entry != NULL && !pm__local_may_be_untold(entry, offset)) return false;
  return pm__seed_parent() == event->code;
}

/* The event's frame stands right on the innermost one, with `outer` for its native frame. */
static void note_span(struct pm_python_thread *thread, const struct event *event, uint64_t outer) {
  enum { SPAN_MAX = 1 << 20 };
  struct pm_code_entry *entry = pm__entries_find(&thread->entries, event->code);
  if (entry != NULL && outer - event->mark < SPAN_MAX) {
    entry->span = (uint32_t)(outer - event->mark);
  }
}

/* Is the innermost one frameless? Those alone come from events and have no mark. */
static bool top_is_frameless(const struct pm_shadow *shadow) {
  uint32_t depth = pm__stack_depth(shadow);
  if (depth == 0) return false;
  struct pm_shadow_frame top = shadow->frames[pm__stack_slot(depth - 1)];
  return top.mark == 0 && (top.flags & PM_SHADOW_SEEDED) == 0;
}

/* Does the event's frame stand on another than the innermost one known? */
static bool has_other_parent(struct pm_python_thread *thread, const struct event *event) {
  uint64_t outer = pm__local_outer(thread);
  if (outer == event->mark || event->mark == 0) return false;
  enum pm_footing footing = pm__untold_between(&thread->untold, outer, event->mark);
  if (footing == PM_FOOTING_FIRM) note_span(thread, event, outer);
  if (footing != PM_FOOTING_UNKNOWN) return footing == PM_FOOTING_UNTOLD;
  if (top_is_frameless(thread->shadow)) return false; /* Python knows only what is under it */
  /*
   * The innermost one was found by a walk. It may be this frame itself, found from a callback
   * before its START, or be gone since; in recursion the code under it looks the same.
   */
  if (pm__local_recurs(thread)) return true;
  const void *parent = pm__seed_parent();
  return parent != NULL && !pm__local_is(pm__local_top(thread), parent);
}

static bool is_doubtful(struct pm_python_thread *thread, const struct event *event) {
  if (thread->doubtful || event->kind == PM_EVENT_THROW) return true;
  if (is_entering(event->kind)) return has_other_parent(thread, event);
  return !top_is(thread, event) || top_may_be_gone(thread, event) || may_be_untold(thread, event);
}

static uint64_t resyncs_of(const struct pm_python_thread *thread) {
  return atomic_load_explicit(&thread->shadow->resyncs, memory_order_relaxed);
}

/*
 * What looked like a frame without events may be only the trace of one that is gone,
 * which can stand for long in an unused part of a native frame: it is then not
 * walked for again.
 */
static void walk_and_note(struct pm_python_thread *thread, const struct event *event, uint32_t id,
                          bool fresh) {
  uint64_t outer = pm__local_outer(thread), resyncs = resyncs_of(thread);
  walk(thread, event, id, fresh);
  bool same = !fresh && resyncs_of(thread) == resyncs;
  if (same && is_entering(event->kind)) note_span(thread, event, outer);
}

static void change(struct pm_python_thread *thread, const struct event *event, uint32_t id,
                   bool fresh) {
  bool entering = is_entering(event->kind);
  if (pm__stack_depth(thread->shadow) <= PM_SHADOW_ROOT) thread->deep_uneasy = false;
  if (fresh || is_doubtful(thread, event)) {
    walk_and_note(thread, event, id, fresh);
  } else if (entering) {
    push(thread, event, id);
  } else {
    pop(thread, event);
  }
}

static void apply(struct pm_python_thread *thread, struct event *event, bool fresh) {
  uint32_t id = is_entering(event->kind) ? id_of_event(thread, event) : 0;
  struct pm_shadow *shadow = thread->shadow;
  if (shadow == NULL) return; /* beyond max_threads: its calls are counted all the same */
  pm__stack_count(&shadow->events[event->kind]);
  uint32_t asked = atomic_exchange_explicit(&shadow->attention, 0, memory_order_relaxed);
  if (asked & PM_ATTENTION_CALLS) pm__handover_remind();
  if ((asked & PM_ATTENTION_NAME) && !fresh) pm__names_tell_own(thread->tid, NULL);
  change(thread, event, id, fresh);
  if ((asked & PM_ATTENTION_MARKS) || fresh) pm__marks_complete(shadow);
}

static void take(enum pm_event kind, PyObject *const *args, uintptr_t address, uint32_t live) {
  bool fresh = false;
  PyObject *exception = pm__api_save_exception();
  struct pm_python_thread *thread = enrol(live, &fresh);
  if (thread != NULL) {
    uintptr_t distance = thread->distance[kind];
    struct event event = {.kind = kind,
                          .code = args[0],
                          .offset = args[1],
                          .mark = distance == 0 ? 0 : address + distance};
    apply(thread, &event, fresh);
  }
  pm__api_restore_exception(exception);
}

/* The parent's events are still on in a child: the first of them is where it may start anew. */
static void tell_forked_child(void) {
  PyObject *exception = pm__api_save_exception();
  if (pm__python_session.hooks.in_forked_child != NULL) {
    pm__python_session.hooks.in_forked_child();
  }
  pm__api_restore_exception(exception);
}

PyObject *pm__cold_event(enum pm_event kind, PyObject *const *args, uintptr_t address) {
  struct pm_python_session *session = &pm__python_session;
  atomic_fetch_add(&session->cold, 1);
  uint32_t live = atomic_load(&session->live);
  if (live != 0) {
    take(kind, args, address, live);
  } else if (atomic_load_explicit(&session->phase, memory_order_relaxed) == PM_PHASE_CALIBRATING) {
    pm__calibrate_event(kind, args[0], address);
  }
  atomic_fetch_sub(&session->cold, 1);
  bool child = live == 0 && atomic_load_explicit(&session->child_waits, memory_order_relaxed);
  if (child && atomic_exchange(&session->child_waits, 0)) tell_forked_child();
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
