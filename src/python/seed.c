/* SPDX-License-Identifier: Apache-2.0 */
/* Walking Python frames through the public API, and fitting the shadow to what is found. */
#include "python/seed.h"

#include "python/codes.h"
#include "python/greenlets.h"
#include "python/names.h"
#include "python/stack.h"
#include "python/state.h"

/* co_flags: CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR (Include/cpython/code.h). */
static bool code_suspends(PyObject *code) {
  return (pm__api_integer_attribute(code, "co_flags", 0) & (0x20 | 0x80 | 0x200)) != 0;
}

struct pm_code_entry *pm__seed_entry_in(struct pm_python_thread *thread, PyObject *code,
                                        PyObject *globals) {
  struct pm_code_entry *entry = pm__entries_find(&thread->entries, code);
  if (entry != NULL) return entry;
  pm__stack_count(&thread->met);
  uint32_t id = pm__codes_id(code, globals);
  bool suspends = code_suspends(code);
  pm__greenlets_watch(thread); /* runs code of others: entries may come and move */
  entry = pm__entries_add(&thread->entries, code);
  entry->id = id;
  entry->calls = pm__local_cell(thread, id);
  entry->suspends = suspends;
  entry->start = -1;
  entry->framed = thread->framed;
  return entry;
}

struct pm_code_entry *pm__seed_entry(struct pm_python_thread *thread, PyObject *code,
                                     PyObject *frame) {
  struct pm_code_entry *entry = pm__entries_find(&thread->entries, code);
  if (entry != NULL) return entry;
  PyObject *globals = frame == NULL ? NULL : pm__api.PyFrame_GetGlobals(frame);
  entry = pm__seed_entry_in(thread, code, globals);
  pm__api_release(globals);
  return entry;
}

void pm__seed_note(struct pm_seed_walk *walk, const struct pm_code_entry *entry) {
  struct pm_seed_step step = {entry->code, entry->id, entry->suspends};
  if (walk->total < PM_SHADOW_TAIL) walk->leaf[walk->total] = step;
  walk->root[walk->total % PM_SHADOW_ROOT] = step;
  walk->total++;
}

/* Takes over the reference to `frame`. */
static void walk_frames(struct pm_seed_walk *walk, struct pm_python_thread *thread, PyObject *frame,
                        uint32_t limit) {
  walk->total = 0;
  walk->outermost = NULL;
  while (frame != NULL) {
    PyObject *code = pm__api.PyFrame_GetCode(frame);
    pm__seed_note(walk, pm__seed_entry(thread, code, frame));
    pm__api.Py_DecRef(code);
    PyObject *back = walk->total < limit ? pm__api.PyFrame_GetBack(frame) : NULL;
    if (back == NULL && walk->total < limit) {
      walk->outermost = frame;
    } else {
      pm__api.Py_DecRef(frame);
    }
    frame = back;
  }
}

static bool walk_self(struct pm_seed_walk *walk, struct pm_python_thread *thread, uint32_t limit) {
  PyObject *frame = pm__api.PyEval_GetFrame(); /* borrowed */
  if (frame == NULL) return false;
  pm__api.Py_IncRef(frame);
  walk_frames(walk, thread, frame, limit);
  return true;
}

/* The frame at a depth that is visible: near the root or near the leaf. */
static struct pm_seed_step walked_at(const struct pm_seed_walk *walk, uint32_t depth) {
  uint32_t step = walk->total - 1 - depth;
  return depth < PM_SHADOW_ROOT ? walk->root[step % PM_SHADOW_ROOT] : walk->leaf[step];
}

/* The shadow being fitted. `codes` stands beside its slots; NULL for another thread's shadow. */
struct fit {
  struct pm_shadow *shadow;
  const void **codes;
  uint32_t old_depth;
  uint32_t low; /* deep frames from here on are in their slots, once they are fitted */
  bool thrown;
  bool waiting; /* what is new may be about to enter: a walk at START or RESUME has found it */
  uint32_t session;
  bool agreed; /* all frames up to here were in the shadow already */
  bool deep_uneasy; /* one of the ring's frames is uneasy, or was and may be still */
};

static bool had_already(const struct fit *fit, uint32_t depth, struct pm_seed_step step) {
  return fit->agreed && depth < fit->old_depth && pm__stack_holds(fit->shadow, depth) &&
         pm__local_is(fit->codes[pm__stack_slot(depth)], step.code);
}

/* Is there a frame under the one at `depth`, in its slot? */
static bool is_fitted_below(const struct fit *fit, uint32_t depth) {
  return depth > 0 && (depth - 1 < PM_SHADOW_ROOT || depth - 1 >= fit->low);
}

/* Does the frame at `depth` stand on one that may be gone without an event? */
static bool is_uneasy(const struct fit *fit, uint32_t depth) {
  if (depth == 0) return false;
  if (!is_fitted_below(fit, depth)) return fit->deep_uneasy;
  return (fit->shadow->frames[pm__stack_slot(depth - 1)].flags & PM_SHADOW_LOOSE) != 0;
}

static void keep_code(struct fit *fit, uint32_t depth, const void *code, bool uneasy) {
  if (fit->codes == NULL) return;
  fit->codes[pm__stack_slot(depth)] = uneasy ? pm__local_uneasy(code) : code;
  if (uneasy && depth >= PM_SHADOW_ROOT) fit->deep_uneasy = true;
}

static uint32_t flags_of(const struct fit *fit, struct pm_seed_step step) {
  uint32_t flags = PM_SHADOW_SEEDED;
  if (step.suspends || fit->waiting) flags |= PM_SHADOW_LOOSE;
  if (step.suspends && fit->thrown) flags |= PM_SHADOW_PASSED;
  return flags;
}

/* A deep frame that was not in its slot says nothing of those above it. */
static void fit_frame(struct fit *fit, uint32_t depth, struct pm_seed_step step) {
  if (had_already(fit, depth, step)) return;
  bool lost = fit->agreed && depth < fit->old_depth && !pm__stack_holds(fit->shadow, depth);
  /* Other frames in place of old ones are no awaiters that came back. */
  if (fit->agreed && depth < fit->old_depth) fit->thrown = false;
  if (!lost) fit->agreed = false;
  fit->shadow->frames[pm__stack_slot(depth)] =
      (struct pm_shadow_frame){.code = step.id, .flags = flags_of(fit, step), .mark = 0};
  keep_code(fit, depth, step.code, is_uneasy(fit, depth));
}

/* Below the event's own frame first; whether they all agreed is what makes a resync. */
static void fit_frames(struct fit *fit, const struct pm_seed_walk *walk, uint32_t end) {
  uint32_t root = end < PM_SHADOW_ROOT ? end : PM_SHADOW_ROOT;
  fit->low = walk->total > PM_PYTHON_FRAMES ? walk->total - PM_SHADOW_TAIL : PM_SHADOW_ROOT;
  for (uint32_t d = 0; d < root; d++) fit_frame(fit, d, walked_at(walk, d));
  for (uint32_t d = fit->low; d < end; d++) fit_frame(fit, d, walked_at(walk, d));
}

/* `session`: whose codes these are. Another one may have begun since the walk. */
static void finish(struct pm_shadow *shadow, uint32_t depth, uint32_t session) {
  pm__stack_rewrite_depth(shadow, depth);
  atomic_store_explicit(&shadow->seeded, session, memory_order_relaxed);
  pm__stack_rewrite_end(shadow);
}

void pm__seed_empty(struct pm_python_thread *thread) {
  pm__stack_rewrite_begin(thread->shadow);
  finish(thread->shadow, 0, thread->session);
}

static void fit_shadow(struct fit *fit, const struct pm_seed_walk *walk, struct pm_seed_event event,
                       bool fresh) {
  bool own_top = event.code != NULL && walked_at(walk, walk->total - 1).code == event.code;
  uint32_t below = own_top && event.entering ? walk->total - 1 : walk->total;
  pm__stack_rewrite_begin(fit->shadow);
  fit_frames(fit, walk, below);
  if (!fresh && !(fit->agreed && fit->old_depth == below)) pm__stack_count(&fit->shadow->resyncs);
  if (below < walk->total) {
    fit->shadow->frames[pm__stack_slot(below)] =
        (struct pm_shadow_frame){.code = walked_at(walk, below).id, .flags = 0, .mark = event.mark};
    keep_code(fit, below, event.code, is_uneasy(fit, below));
  }
  finish(fit->shadow, walk->total, fit->session);
}

enum pm_seed_result pm__seed_self(struct pm_python_thread *thread, struct pm_seed_event event,
                                  bool fresh) {
  struct pm_seed_walk walk;
  if (!walk_self(&walk, thread, UINT32_MAX)) return PM_SEED_NO_FRAMES;
  if (fresh) pm__names_tell_own(thread->tid, walk.outermost);
  pm__api_release(walk.outermost);
  struct fit fit = {.shadow = thread->shadow,
                    .codes = thread->codes,
                    .old_depth = fresh ? 0 : pm__stack_depth(thread->shadow),
                    .session = thread->session,
                    .thrown = event.thrown && !fresh,
                    .waiting = event.entering && !event.thrown && !fresh,
                    .agreed = !fresh,
                    .deep_uneasy = thread->deep_uneasy};
  fit_shadow(&fit, &walk, event, fresh);
  thread->deep_uneasy = fit.deep_uneasy;
  return walked_at(&walk, walk.total - 1).code == event.code ? PM_SEED_DONE : PM_SEED_OTHER_TOP;
}

void pm__seed_walk_from(struct pm_seed_walk *walk, struct pm_python_thread *reader,
                        PyObject *frame) {
  pm__api.Py_IncRef(frame);
  walk_frames(walk, reader, frame, UINT32_MAX);
}

void pm__seed_other(struct pm_shadow *shadow, const struct pm_seed_walk *walk) {
  uint32_t live = atomic_load_explicit(&pm__python_session.live, memory_order_relaxed);
  struct fit fit = {.shadow = shadow, .session = live};
  fit_shadow(&fit, walk, (struct pm_seed_event){0}, true);
}

const void *pm__seed_parent(void) {
  PyObject *frame = pm__api.PyEval_GetFrame(); /* borrowed */
  PyObject *back = frame == NULL ? NULL : pm__api.PyFrame_GetBack(frame);
  if (back == NULL) return NULL;
  PyObject *code = pm__api.PyFrame_GetCode(back);
  pm__api_release(code);
  pm__api_release(back);
  return code;
}

/*
 * The leaving frame is step 0 and stood at `depth`, which is now the stack's. Which
 * frames were uneasy is not known any more: where one was, all are.
 */
void pm__seed_refill(struct pm_python_thread *thread, const void *leaving) {
  struct pm_shadow *shadow = thread->shadow;
  struct pm_seed_walk walk;
  if (!walk_self(&walk, thread, PM_SHADOW_TAIL)) return;
  pm__api_release(walk.outermost);
  uint32_t depth = pm__stack_depth(shadow);
  uint32_t low =
      depth - PM_SHADOW_ROOT < walk.total - 1 ? PM_SHADOW_ROOT : depth - (walk.total - 1);
  if (walk.leaf[0].code != leaving) return;
  pm__stack_rewrite_begin(shadow);
  for (uint32_t d = low; d < depth; d++) {
    uint32_t slot = pm__stack_slot(d);
    struct pm_seed_step step = walk.leaf[depth - d];
    shadow->frames[slot] =
        (struct pm_shadow_frame){.code = step.id, .flags = PM_SHADOW_SEEDED, .mark = 0};
    thread->codes[slot] = thread->deep_uneasy ? pm__local_uneasy(step.code) : step.code;
  }
  shadow->tail_low = low;
  pm__stack_rewrite_end(shadow);
}
