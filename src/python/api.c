/* SPDX-License-Identifier: Apache-2.0 */
/* Finding CPython in the process, and small helpers over its API. */
#include "python/api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/loader.h"

struct pm_api pm__api;

/* One symbol of the table: where its address goes. */
struct entry {
  const char *name;
  size_t offset;
  bool optional;
};

static const struct entry entries[] = {
#define FUNCTION(optional, result, name, arguments) \
  {#name, offsetof(struct pm_api, name), optional},
#define DATA(name) {#name, offsetof(struct pm_api, name), false},
    PM_API_FUNCTIONS(FUNCTION) PM_API_DATA(DATA)
#undef FUNCTION
#undef DATA
};

/* Names of loaded objects, copied so that dlopen is called outside the loader's lock. */
struct objects {
  char *names[512];
  size_t count;
};

static int note_object(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size;
  struct objects *objects = context;
  if (info->dlpi_name == NULL || info->dlpi_name[0] == '\0') return 0;
  if (objects->count == PM_COUNT_OF(objects->names)) return 1;
  char *copy = strdup(info->dlpi_name);
  if (copy == NULL) return 1;
  objects->names[objects->count++] = copy;
  return 0;
}

static void *handle_if_python(const char *name) {
  void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return NULL;
  if (dlsym(handle, "Py_IsInitialized") != NULL) return handle;
  dlclose(handle);
  return NULL;
}

/*
 * A host may load the interpreter as a plugin's private dependency, where the
 * global look-up does not see it. The handle stays open: its functions are kept.
 */
static void *find_private_python(void) {
  static _Atomic(void *) kept;
  if (kept != NULL) return kept;
  struct objects objects = {.count = 0};
  pm__loader_each(note_object, &objects);
  for (size_t i = 0; i < objects.count; i++) {
    if (kept == NULL) kept = handle_if_python(objects.names[i]);
    free(objects.names[i]);
  }
  return kept;
}

bool pm__api_is_global(void) { return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL; }

void *pm__api_symbol(const char *name) {
  if (pm__api_is_global()) return dlsym(RTLD_DEFAULT, name);
  void *python = find_private_python();
  return python == NULL ? NULL : dlsym(python, name);
}

const char *pm__api_load(void) {
  const char *missing = NULL;
  for (size_t i = 0; i < PM_COUNT_OF(entries); i++) {
    void *address = pm__api_symbol(entries[i].name);
    memcpy((char *)&pm__api + entries[i].offset, &address, sizeof address);
    if (address == NULL && !entries[i].optional && missing == NULL) missing = entries[i].name;
    if (i == 0 && address == NULL) break; /* no CPython: nothing else to look for */
  }
  return missing;
}

/*
 * From 3.15 on Py_IsInitialized() answers no until `site` has been imported, and
 * `site` is what runs us: a thread that has a Python thread state knows better.
 */
static bool is_running(void) {
  if (pm__api.Py_IsInitialized == NULL) return false;
  if (pm__api.Py_IsInitialized()) return true;
  return pm__api.PyGILState_GetThisThreadState != NULL &&
         pm__api.PyGILState_GetThisThreadState() != NULL;
}

bool pm__api_usable(void) {
  if (!is_running()) return false;
  if (pm__api.Py_IsFinalizing != NULL) return !pm__api.Py_IsFinalizing();
  return pm__api._Py_IsFinalizing == NULL || !pm__api._Py_IsFinalizing();
}

PyObject *pm__api_dict_get(PyObject *dict, PyObject *key) {
  PyObject *value = NULL;
  if (pm__api.PyDict_GetItemRef != NULL) {
    /* Safe while other threads change the dictionary without a GIL. */
    if (pm__api.PyDict_GetItemRef(dict, key, &value) < 0) value = NULL;
  } else {
    value = pm__api.PyDict_GetItemWithError(dict, key);
    if (value != NULL) pm__api.Py_IncRef(value);
  }
  if (value == NULL) pm__api.PyErr_Clear();
  return value;
}

PyObject *pm__api_dict_get_string(PyObject *dict, const char *key) {
  PyObject *name = pm__api.PyUnicode_FromString(key);
  PyObject *value = name == NULL ? NULL : pm__api_dict_get(dict, name);
  pm__api_release(name);
  if (value == NULL) pm__api.PyErr_Clear();
  return value;
}

PyObject *pm__api_attribute(PyObject *object, const char *name) {
  PyObject *key = pm__api.PyUnicode_FromString(name);
  PyObject *value = key == NULL ? NULL : pm__api.PyObject_GenericGetAttr(object, key);
  pm__api_release(key);
  if (value == NULL) pm__api.PyErr_Clear();
  return value;
}

PyObject *pm__api_module_names(const char *module) {
  PyObject *modules = pm__api.PySys_GetObject("modules"); /* borrowed */
  PyObject *found = modules == NULL ? NULL : pm__api_dict_get_string(modules, module);
  if (found == NULL) return NULL;
  PyObject *names = pm__api.PyModule_GetDict(found); /* borrowed from the module */
  if (names == NULL) pm__api.PyErr_Clear();
  if (names != NULL) pm__api.Py_IncRef(names);
  pm__api.Py_DecRef(found);
  return names;
}

PyObject *pm__api_new_names(void) {
  PyObject *builtins = pm__api_module_names("builtins");
  PyObject *names = builtins == NULL ? NULL : pm__api.PyDict_New();
  if (names != NULL) pm__api.PyDict_SetItemString(names, "__builtins__", builtins);
  pm__api_release(builtins);
  return names;
}

PyObject *pm__api_module_item(const char *module, const char *name) {
  PyObject *names = pm__api_module_names(module);
  PyObject *item = names == NULL ? NULL : pm__api_dict_get_string(names, name);
  if (item == NULL) pm__api.PyErr_Clear();
  pm__api_release(names);
  return item;
}

static const char cut_mark[] = "...";

/* The start of the character that the byte at `at` belongs to. */
static size_t character_start(const char *text, size_t at) {
  while (at > 0 && ((unsigned char)text[at] & 0xC0u) == 0x80u) at--;
  return at;
}

/* What does not fit shows as dots, a NUL, which would end the name, as the escape that surrogates get. */
static void copy_cut(const char *text, size_t size, char *out, size_t capacity) {
  static const char nul[] = "\\x00";
  size_t used = 0, end = 0; /* `end`: how much can stand before the dots */
  for (size_t i = 0; i < size; i++) {
    size_t need = text[i] == '\0' ? sizeof nul - 1 : 1;
    if (used + need >= capacity) {
      out[used] = '\0';
      strcpy(out + character_start(out, end), cut_mark);
      return;
    }
    memcpy(out + used, text[i] == '\0' ? nul : text + i, need);
    used += need;
    if (used + sizeof cut_mark <= capacity) end = used;
  }
  out[used] = '\0';
}

/* Lone surrogates have no UTF-8. */
static bool text_with_escapes(PyObject *string, char *out, size_t capacity) {
  char *text = NULL;
  Py_ssize_t size = 0;
  PyObject *bytes = pm__api.PyUnicode_AsEncodedString(string, "utf-8", "backslashreplace");
  bool good = bytes != NULL && pm__api.PyBytes_AsStringAndSize(bytes, &text, &size) == 0;
  if (good) copy_cut(text, (size_t)size, out, capacity);
  pm__api_release(bytes);
  return good;
}

bool pm__api_text(PyObject *string, char *out, size_t capacity) {
  out[0] = '\0';
  if (string == NULL) return false;
  Py_ssize_t size = 0;
  const char *text = pm__api.PyUnicode_AsUTF8AndSize(string, &size);
  bool good = text != NULL;
  if (good) copy_cut(text, (size_t)size, out, capacity);
  pm__api.PyErr_Clear();
  if (!good) good = text_with_escapes(string, out, capacity);
  pm__api.PyErr_Clear();
  return good;
}

long pm__api_integer_attribute(PyObject *object, const char *name, long otherwise) {
  PyObject *value = pm__api_attribute(object, name);
  if (value == NULL) return otherwise;
  long number = pm__api.PyLong_AsLong(value);
  /* -1 is both a value and the sign of an error; no attribute read here is negative. */
  if (number == -1) number = otherwise;
  pm__api.PyErr_Clear();
  pm__api.Py_DecRef(value);
  return number;
}
