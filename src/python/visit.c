/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Into the main interpreter and back. PyGILState_Ensure takes the state that the
 * thread used last, which may be a subinterpreter's: such a thread gets a state
 * of the main interpreter for the time of the visit.
 */
#include "python/visit.h"

#include "python/api.h"

void *pm__visit_attached(void) {
  if (pm__api.PyThreadState_GetUnchecked != NULL) return pm__api.PyThreadState_GetUnchecked();
  if (pm__api._PyThreadState_UncheckedGet == NULL) return NULL;
  return pm__api._PyThreadState_UncheckedGet();
}

/* The thread's state when it is one of a subinterpreter. */
static void *foreign_state(void) {
  void *own = pm__api.PyGILState_GetThisThreadState();
  if (own == NULL) return NULL;
  return pm__api.PyThreadState_GetInterpreter(own) == pm__api.PyInterpreterState_Main() ? NULL
                                                                                        : own;
}

bool pm__visit_begin(struct pm_visit *visit) {
  *visit = (struct pm_visit){.own = foreign_state()};
  if (visit->own == NULL) {
    visit->gil = pm__api.PyGILState_Ensure();
    return true;
  }
  visit->made = pm__api.PyThreadState_New(pm__api.PyInterpreterState_Main());
  if (visit->made == NULL) return false;
  visit->attached = pm__visit_attached() != NULL;
  if (visit->attached) pm__api.PyEval_SaveThread();
  pm__api.PyEval_RestoreThread(visit->made);
  return true;
}

void pm__visit_end(const struct pm_visit *visit) {
  if (visit->own == NULL) {
    pm__api.PyGILState_Release(visit->gil);
    return;
  }
  pm__api.PyThreadState_Clear(visit->made);
  pm__api.PyThreadState_DeleteCurrent();
  /* Taken up again even for a moment: it makes it the state PyGILState_Ensure will find. */
  pm__api.PyEval_RestoreThread(visit->own);
  if (!visit->attached) pm__api.PyEval_SaveThread();
}

/* A new interpreter is put at the head of the list: the pointer alone tells, and is not followed. */
bool pm__visit_has_others(void) {
  return pm__api.PyInterpreterState_Head() != pm__api.PyInterpreterState_Main();
}
