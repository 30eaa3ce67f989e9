/* SPDX-License-Identifier: Apache-2.0 */
/* One look at the other threads' frames, while something keeps them still. */
#include "python/late.h"

#include "python/names.h"
#include "python/seed.h"
#include "python/state.h"
#include "python/still.h"
#include "python/visit.h"

struct late {
  struct pm_python_thread *self;
  PyObject *frames; /* {ident: frame}; NULL: there is no looking at them */
};

static void seed(const struct late *late, struct pm_shadow *shadow, unsigned long ident) {
  struct pm_seed_walk walk;
  PyObject *frame = pm__late_frame(late->frames, ident);
  if (frame == NULL) return;
  pm__seed_walk_from(&walk, late->self, frame);
  pm__api_release(walk.outermost);
  pm__api_release(frame);
  pm__seed_other(shadow, &walk);
}

static void visit(void *context, int32_t tid, unsigned long ident, const char *name) {
  const struct pm_python_hooks *hooks = &pm__python_session.hooks;
  const struct late *late = context;
  if (hooks->name_thread != NULL) hooks->name_thread(tid, name);
  if (tid == late->self->tid || hooks->shadow_of_thread == NULL) return;
  struct pm_shadow *shadow = hooks->shadow_of_thread(tid);
  if (shadow == NULL) return;
  if (late->frames != NULL) seed(late, shadow, ident);
  pm__still_want(shadow, ident);
}

PyObject *pm__late_frames(void) {
  PyObject *function = pm__api.PySys_GetObject("_current_frames"); /* borrowed */
  PyObject *frames = function == NULL ? NULL : pm__api.PyObject_CallNoArgs(function);
  pm__api.PyErr_Clear();
  return frames;
}

PyObject *pm__late_frame(PyObject *frames, unsigned long ident) {
  PyObject *key = pm__api.PyLong_FromUnsignedLong(ident);
  PyObject *frame = key == NULL ? NULL : pm__api_dict_get(frames, key);
  pm__api_release(key);
  return frame;
}

/* _current_frames reaches into subinterpreters too, and one with a GIL of its own runs on. */
void pm__late_threads(bool free_threaded) {
  struct late late = {.self = pm__local_own(), .frames = NULL};
  if (late.self == NULL) return;
  if (!free_threaded && !pm__visit_has_others()) late.frames = pm__late_frames();
  if (free_threaded) pm__still_begin();
  pm__names_each(visit, &late);
  pm__still_seed(late.self);
  pm__api_release(late.frames);
}
