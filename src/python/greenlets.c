/* SPDX-License-Identifier: Apache-2.0 */
/* At each switch the thread walks the frames it now stands on. */
#include "python/greenlets.h"

#include <string.h>

#include "python/callable.h"
#include "python/seed.h"
#include "python/state.h"

/*
 * Owner:    a start, with the GIL.
 * Readers:  callbacks.
 * Ordering: `callable` is made before the session goes live; `about` is a flag
 *           of its own.
 */
static struct {
  PyObject *callable; /* kept while the interpreter lives: threads hold on to it */
  _Atomic bool about; /* the greenlet module is, or is being, imported */
} greenlets;

static void follow(struct pm_python_thread *thread) {
  struct pm_seed_event none = {0};
  /* A greenlet that has just begun stands on no frame yet. */
  if (pm__seed_self(thread, none, false) == PM_SEED_NO_FRAMES) pm__seed_empty(thread);
}

/* Called by greenlet in the one switched to: trace(event, (origin, target)). */
static PyObject *on_switch(PyObject *callable, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames) {
  (void)callable;
  struct pm_python_thread *thread = pm__local_self;
  if (thread == NULL) return pm__api_none();
  uint32_t live = atomic_load_explicit(&pm__python_session.live, memory_order_relaxed);
  if (live != 0 && thread->session == live && thread->shadow != NULL) {
    PyObject *exception = pm__api_save_exception();
    follow(thread);
    pm__api_restore_exception(exception);
  }
  PyObject *next = thread->greenlet_trace;
  return next == NULL ? pm__api_none() : pm__api.PyObject_Vectorcall(next, args, nargsf, kwnames);
}

void pm__greenlets_start(void) {
  if (greenlets.callable == NULL) greenlets.callable = pm__callable_new(on_switch);
  PyObject *settrace = pm__api_module_item("greenlet", "settrace");
  atomic_store(&greenlets.about, settrace != NULL);
  pm__api_release(settrace);
}

void pm__greenlets_notice(const char *module) {
  if (strcmp(module, "greenlet") == 0) atomic_store(&greenlets.about, true);
}

/* Ours may be there since an earlier session: then it must not become its own successor. */
static void keep_earlier(struct pm_python_thread *thread, PyObject *earlier) {
  if (earlier == greenlets.callable || earlier == pm__api_none()) {
    pm__api_release(earlier);
    return;
  }
  pm__api_release(thread->greenlet_trace);
  thread->greenlet_trace = earlier;
}

void pm__greenlets_watch(struct pm_python_thread *thread) {
  if (!atomic_load_explicit(&greenlets.about, memory_order_relaxed)) return;
  if (thread->greenlet_session == thread->session || greenlets.callable == NULL) return;
  /* Half imported, the module has no settrace yet: asked again at the next new code. */
  PyObject *settrace = pm__api_module_item("greenlet", "settrace");
  if (settrace == NULL) return;
  PyObject *earlier = pm__api.PyObject_CallOneArg(settrace, greenlets.callable);
  if (earlier != NULL) {
    thread->greenlet_session = thread->session;
    thread->doubtful = true;
    keep_earlier(thread, earlier);
  }
  pm__api.PyErr_Clear();
  pm__api_release(settrace);
}

void pm__greenlets_orphan(void) { greenlets.callable = NULL; }
