/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread names as the threading module knows them. Only its dictionaries and
 * attributes are read: none of its methods runs.
 */
#include "python/names.h"

#include <string.h>
#include <unistd.h>

#include "python/state.h"

enum { NAME_BYTES = 256 };

static bool name_of_object(PyObject *object, char name[NAME_BYTES]) {
  if (object == NULL) return false;
  PyObject *text = pm__api_attribute(object, "_name");
  bool good = pm__api_text(text, name, NAME_BYTES) && name[0] != '\0';
  pm__api_release(text);
  return good;
}

static bool attribute_ends_with(PyObject *object, const char *attribute, const char *end) {
  char text[1024];
  PyObject *value = pm__api_attribute(object, attribute);
  bool good = pm__api_text(value, text, sizeof text);
  pm__api_release(value);
  size_t size = strlen(text), tail = strlen(end);
  return good && size >= tail && strcmp(text + size - tail, end) == 0;
}

static bool is_bootstrap(PyObject *frame) {
  PyObject *code = pm__api.PyFrame_GetCode(frame);
  bool good = attribute_ends_with(code, "co_name", "_bootstrap") &&
              attribute_ends_with(code, "co_filename", "threading.py");
  pm__api_release(code);
  return good;
}

/* threading.Thread._bootstrap(self) is the outermost frame of every threading.Thread. */
static bool name_from_root(PyObject *root, char name[NAME_BYTES]) {
  if (root == NULL || !is_bootstrap(root)) return false;
  PyObject *self = pm__api.PyFrame_GetVarString(root, "self");
  bool good = name_of_object(self, name);
  pm__api_release(self);
  pm__api.PyErr_Clear();
  return good;
}

/* threading._active: ident to Thread. */
static bool name_from_table(char name[NAME_BYTES]) {
  PyObject *active = pm__api_module_item("threading", "_active");
  PyObject *ident = pm__api.PyLong_FromUnsignedLong(pm__api.PyThread_get_thread_ident());
  PyObject *object = active == NULL || ident == NULL ? NULL : pm__api_dict_get(active, ident);
  bool good = name_of_object(object, name);
  pm__api_release(object);
  pm__api_release(ident);
  pm__api_release(active);
  return good;
}

void pm__names_tell_own(int32_t tid, PyObject *root) {
  char name[NAME_BYTES];
  bool found = name_from_root(root, name) || name_from_table(name);
  if (!found && tid == (int32_t)getpid()) {
    strcpy(name, "MainThread");
    found = true;
  }
  const struct pm_python_hooks *hooks = &pm__python_session.hooks;
  if (found && hooks->name_thread != NULL) hooks->name_thread(tid, name);
}

void pm__names_each(void (*visit)(void *context, int32_t tid, unsigned long ident,
                                  const char *name),
                    void *context) {
  PyObject *active = pm__api_module_item("threading", "_active");
  /* A copy: other threads change the table, and without a GIL in the middle of a walk. */
  PyObject *copy = active == NULL ? NULL : pm__api.PyDict_Copy(active);
  Py_ssize_t position = 0;
  PyObject *key = NULL, *object = NULL;
  while (copy != NULL && pm__api.PyDict_Next(copy, &position, &key, &object)) {
    char name[NAME_BYTES];
    long tid = pm__api_integer_attribute(object, "_native_id", 0);
    unsigned long ident = pm__api.PyLong_AsUnsignedLong(key);
    pm__api.PyErr_Clear();
    if (tid > 0 && name_of_object(object, name)) visit(context, (int32_t)tid, ident, name);
  }
  pm__api_release(copy);
  pm__api_release(active);
  pm__api.PyErr_Clear();
}
