/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys._jit tells, but the JIT is switched on last of all, after `site`, which is what
 * runs us: so PYTHON_JIT is asked too. Where the JIT needs no variable, the first look
 * after the start finds it (place.c).
 */
#include "python/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/api.h"

/* False where there is no such thing: before 3.14. */
static bool ask(const char *method) {
  PyObject *jit = pm__api.PySys_GetObject("_jit"); /* borrowed */
  PyObject *answer = jit == NULL ? NULL : pm__api.PyObject_CallMethod(jit, method, NULL);
  bool yes = answer != NULL && pm__api.PyLong_AsLong(answer) == 1;
  pm__api_release(answer);
  pm__api.PyErr_Clear();
  return yes;
}

static bool ignores_environment(void) {
  PyObject *flags = pm__api.PySys_GetObject("flags"); /* borrowed */
  return flags != NULL && pm__api_integer_attribute(flags, "ignore_environment", 0) != 0;
}

/* In the environment that the process began with: what the program puts there is for its children. */
static bool is_in_environment(void) {
  static const char name[] = "PYTHON_JIT=";
  FILE *file = fopen("/proc/self/environ", "re");
  char *entry = NULL;
  size_t room = 0;
  bool on = false;
  while (file != NULL && !on && getdelim(&entry, &room, '\0', file) > 0) {
    const char *value = entry + sizeof name - 1;
    on = strncmp(entry, name, sizeof name - 1) == 0 && value[0] != '\0' && value[0] != '0';
  }
  free(entry);
  if (file != NULL) fclose(file);
  return on;
}

bool pm__jit_is_on(void) { return ask("is_enabled"); }

bool pm__jit_is_wanted(void) {
  return ask("is_available") && !ignores_environment() && is_in_environment();
}
