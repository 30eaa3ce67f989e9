/* SPDX-License-Identifier: Apache-2.0 */
/* Letting go of the GIL around a wait, for callers that may or may not hold it. */
#include "python/api.h"
#include "python/python.h"

typedef int (*check_function)(void);
typedef void *(*save_function)(void);
typedef void (*restore_function)(void *);

void *pm__python_release_gil(void) {
  check_function initialized = (check_function)pm__api_symbol("Py_IsInitialized");
  check_function holds = (check_function)pm__api_symbol("PyGILState_Check");
  save_function save = (save_function)pm__api_symbol("PyEval_SaveThread");
  if (initialized == NULL || holds == NULL || save == NULL) return NULL;
  return initialized() && holds() ? save() : NULL;
}

void pm__python_take_gil(void *released) {
  if (released == NULL) return;
  restore_function restore = (restore_function)pm__api_symbol("PyEval_RestoreThread");
  restore(released);
}
