/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitoring callbacks: the code that costs, run at every call and return.
 * The hot path is a few loads and stores on the thread's own memory: no lock, no
 * allocation, no call into Python. Whatever it cannot do goes to cold.c.
 *
 * The mark of a frame is its callback's CFA plus the calibrated distance. The
 * CFA is the stack pointer at the interpreter's call, so it does not depend on
 * how this file is compiled.
 */
#include "python/callbacks.h"

#include "python/cold.h"
#include "python/local.h"
#include "python/oracle.h"
#include "python/stack.h"
#include "python/state.h"

#define CALLER_CFA() ((uintptr_t)__builtin_dwarf_cfa())

static inline bool is_hot(const struct pm_python_thread *thread) {
  if (PM_UNLIKELY(thread == NULL)) return false;
  uint32_t live = atomic_load_explicit(&pm__python_session.live, memory_order_relaxed);
  if (PM_UNLIKELY(thread->hot != live)) return false;
  return PM_LIKELY(atomic_load_explicit(&thread->shadow->attention, memory_order_relaxed) == 0);
}

static inline PyObject *none(void) { return pm__python_session.none; }

static inline __attribute__((always_inline)) PyObject *
enter_as(enum pm_event kind, PyObject *const *args, uintptr_t address,
         struct pm_python_thread *thread, struct pm_code_entry *entry) {
  struct pm_shadow *shadow = thread->shadow;
  uint32_t top = pm__stack_depth(shadow) - 1; /* an empty stack wraps round, to far too deep */
  if (PM_UNLIKELY(top >= shadow->innermost_easy)) return pm__cold_event(kind, args, address);
  uint64_t mark = (address + thread->distance[kind]) & (uint64_t)(int64_t)entry->framed;
  uint64_t outer = shadow->frames[top].mark;
  if (outer != mark &&
      PM_UNLIKELY(!pm__untold_is_as_before(&thread->untold, outer, mark, entry->span))) {
    return pm__cold_event(kind, args, address);
  }
  if (kind == PM_EVENT_START) pm__stack_count(entry->calls);
  pm__stack_count(&shadow->events[kind]);
  (&thread->codes[top])[1] = entry->code;
  pm__stack_push_easily(shadow, top, entry->id, mark);
  return none();
}

/* The code is not at its first place. A function of its own, for the other to save no registers. */
static __attribute__((noinline)) PyObject *enter_probing(enum pm_event kind, PyObject *const *args,
                                                         uintptr_t address,
                                                         struct pm_code_entry *first) {
  struct pm_code_entry *entry = pm__entries_probe(first, args[0]);
  if (PM_UNLIKELY(entry == NULL)) return pm__cold_event(kind, args, address);
  return enter_as(kind, args, address, pm__local_self, entry);
}

static inline __attribute__((always_inline)) PyObject *
enter(enum pm_event kind, PyObject *const *args, uintptr_t address) {
  struct pm_python_thread *thread = pm__local_self;
  if (PM_UNLIKELY(!is_hot(thread))) return pm__cold_event(kind, args, address);
  struct pm_code_entry *first = pm__entries_first(&thread->entries, args[0]);
  if (PM_UNLIKELY(first->code != args[0])) return enter_probing(kind, args, address, first);
  return enter_as(kind, args, address, thread, first);
}

/* Beyond PM_SHADOW_ROOT frames. False: this pop needs a look at the frames. */
static __attribute__((noinline)) bool leave_deep(struct pm_python_thread *thread,
                                                 enum pm_event kind, const void *code) {
  struct pm_shadow *shadow = thread->shadow;
  uint32_t depth = pm__stack_depth(shadow);
  bool last_of_ring = depth - 1 > PM_SHADOW_ROOT && depth - 1 <= shadow->tail_low;
  if (last_of_ring || pm__local_top(thread) != code) return false;
  pm__stack_count(&shadow->events[kind]);
  pm__stack_pop(shadow);
  return true;
}

static inline __attribute__((always_inline)) PyObject *
leave(enum pm_event kind, PyObject *const *args, uintptr_t address) {
  struct pm_python_thread *thread = pm__local_self;
  if (PM_UNLIKELY(!is_hot(thread))) return pm__cold_event(kind, args, address);
  struct pm_shadow *shadow = thread->shadow;
  uint32_t top = pm__stack_depth(shadow) - 1; /* an empty stack wraps round, to far too deep */
  if (PM_UNLIKELY(top >= PM_SHADOW_ROOT || thread->codes[top] != args[0])) {
    return leave_deep(thread, kind, args[0]) ? none() : pm__cold_event(kind, args, address);
  }
  pm__stack_count(&shadow->events[kind]);
  pm__stack_set_depth(shadow, top);
  return none();
}

/* The awaiters of a frame that is thrown into get no events: always look at the frames. */
static inline PyObject *walk(enum pm_event kind, PyObject *const *args, uintptr_t address) {
  return pm__cold_event(kind, args, address);
}

/* The frame itself may have had no event, or one it had called may have left without. */
static inline PyObject *unwind(enum pm_event kind, PyObject *const *args, uintptr_t address) {
  struct pm_python_thread *thread = pm__local_self;
  if (PM_UNLIKELY(!is_hot(thread))) return pm__cold_event(kind, args, address);
  const struct pm_code_entry *entry = pm__entries_find(&thread->entries, args[0]);
  uintptr_t distance = thread->distance[kind];
  uint64_t mark = distance == 0 ? 0 : address + distance;
  bool known = entry != NULL && !pm__local_may_be_untold(entry, pm__api.PyLong_AsLong(args[1])) &&
               pm__local_runs_top(thread, mark);
  return known ? leave(kind, args, address) : pm__cold_event(kind, args, address);
}

#define CALLBACK(name, side, kind)                                                \
  static PyObject *name(PyObject *callable, PyObject *const *args, size_t nargsf, \
                        PyObject *kwnames) {                                      \
    (void)callable, (void)nargsf, (void)kwnames;                                  \
    uintptr_t caller = CALLER_CFA();                                              \
    pm__oracle_before(kind, args[0]);                                             \
    PyObject *result = side(kind, args, caller);                                  \
    pm__oracle_after(kind, args, caller);                                         \
    return result;                                                                \
  }
CALLBACK(on_start, enter, PM_EVENT_START)
CALLBACK(on_resume, enter, PM_EVENT_RESUME)
CALLBACK(on_throw, walk, PM_EVENT_THROW)
CALLBACK(on_return, leave, PM_EVENT_RETURN)
CALLBACK(on_yield, leave, PM_EVENT_YIELD)
CALLBACK(on_unwind, unwind, PM_EVENT_UNWIND)
#undef CALLBACK

const pm_vectorcall pm__callbacks[PM_EVENT_KINDS] = {
    [PM_EVENT_START] = on_start,   [PM_EVENT_RESUME] = on_resume, [PM_EVENT_THROW] = on_throw,
    [PM_EVENT_RETURN] = on_return, [PM_EVENT_YIELD] = on_yield,   [PM_EVENT_UNWIND] = on_unwind,
};
