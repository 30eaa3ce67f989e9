/* SPDX-License-Identifier: Apache-2.0 */
/* Letting go of the GIL around a wait, for callers that may or may not hold it. */
#include "python/api.h"
#include "python/python.h"

typedef int (*check_function)(void);
typedef void *(*save_function)(void);
typedef void (*restore_function)(void *);

/*
 * Is the caller attached to an interpreter? PyGILState_Check says yes to everybody
 * once there has been a subinterpreter; the unchecked look-up is the thread's own
 * from 3.12 on, and before that it tells of any thread. Both together are right.
 */
static bool holds_gil(void) {
  save_function unchecked = (save_function)pm__api_symbol("PyThreadState_GetUnchecked");
  if (unchecked != NULL) return unchecked() != NULL;
  check_function holds = (check_function)pm__api_symbol("PyGILState_Check");
  unchecked = (save_function)pm__api_symbol("_PyThreadState_UncheckedGet");
  return holds != NULL && unchecked != NULL && holds() && unchecked() != NULL;
}

void *pm__python_release_gil(void) {
  check_function initialized = (check_function)pm__api_symbol("Py_IsInitialized");
  save_function save = (save_function)pm__api_symbol("PyEval_SaveThread");
  if (initialized == NULL || save == NULL) return NULL;
  return initialized() && holds_gil() ? save() : NULL;
}

void pm__python_take_gil(void *released) {
  if (released == NULL) return;
  restore_function restore = (restore_function)pm__api_symbol("PyEval_RestoreThread");
  restore(released);
}
