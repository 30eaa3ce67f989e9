/* SPDX-License-Identifier: Apache-2.0 */
/* One look at the other threads' frames, while the GIL keeps them still. */
#include "python/late.h"

#include "python/names.h"
#include "python/seed.h"
#include "python/state.h"
#include "python/visit.h"

struct late {
  struct pm_python_thread *self;
  PyObject *frames; /* {ident: frame}, or NULL */
};

static void seed(const struct late *late, int32_t tid, unsigned long ident) {
  const struct pm_python_hooks *hooks = &pm__python_session.hooks;
  if (late->frames == NULL || hooks->shadow_of_thread == NULL || tid == late->self->tid) return;
  PyObject *key = pm__api.PyLong_FromUnsignedLong(ident);
  PyObject *frame = key == NULL ? NULL : pm__api_dict_get(late->frames, key);
  struct pm_shadow *shadow = frame == NULL ? NULL : hooks->shadow_of_thread(tid);
  if (shadow != NULL) pm__seed_other(late->self, shadow, frame);
  pm__api_release(frame);
  pm__api_release(key);
}

static void visit(void *context, int32_t tid, unsigned long ident, const char *name) {
  const struct pm_python_hooks *hooks = &pm__python_session.hooks;
  if (hooks->name_thread != NULL) hooks->name_thread(tid, name);
  seed(context, tid, ident);
}

/*
 * Nothing keeps other threads' frames still without a GIL, nor those of a
 * subinterpreter with a GIL of its own, into which _current_frames reaches too.
 */
void pm__late_threads(bool free_threaded) {
  struct late late = {.self = pm__local_own(), .frames = NULL};
  if (late.self == NULL) return;
  bool still = !free_threaded && !pm__visit_has_others();
  PyObject *function = still ? pm__api.PySys_GetObject("_current_frames") : NULL; /* borrowed */
  if (function != NULL) late.frames = pm__api.PyObject_CallNoArgs(function);
  pm__api.PyErr_Clear();
  pm__names_each(visit, &late);
  pm__api_release(late.frames);
}
