/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A type whose instances hold one C function, called by vectorcall. The function
 * stands behind the base object; its offset is given from the start of the
 * object, for up to 3.13 the relative form of __vectorcalloffset__ crashes.
 */
#include "python/callable.h"

#include <string.h>

/*
 * Owner:    whoever holds the GIL in a start; constant afterwards.
 * Readers:  the same.
 * Ordering: none needed.
 */
static struct {
  PyObject *type, *canary_type; /* kept while the interpreter lives */
  Py_ssize_t base; /* size of the base object */
  void (*canary_gone)(void);
} made;

static void finalize_canary(PyObject *canary) {
  (void)canary;
  if (made.canary_gone != NULL) made.canary_gone();
}

static PyObject *do_nothing(PyObject *callable, PyObject *const *args, size_t nargsf,
                            PyObject *kwnames) {
  (void)callable, (void)args, (void)nargsf, (void)kwnames;
  return pm__api_none();
}

static PyObject *make_type(Py_ssize_t base, void (*finalize)(PyObject *)) {
  struct pm_member_def members[] = {
      {"__vectorcalloffset__", PM_MEMBER_SSIZE, base, PM_MEMBER_READONLY, NULL},
      {0},
  };
  void *call = NULL, *end = NULL;
  memcpy(&call, &pm__api.PyVectorcall_Call, sizeof call);
  memcpy(&end, &finalize, sizeof end);
  struct pm_type_slot slots[] = {
      {PM_SLOT_TP_CALL, call},
      {PM_SLOT_TP_MEMBERS, members},
      {finalize == NULL ? 0 : PM_SLOT_TP_FINALIZE, end},
      {0, NULL},
  };
  struct pm_type_spec spec = {
      .name = "pyrometer.callback",
      .basicsize = (int)base + (int)sizeof(pm_vectorcall),
      .itemsize = 0,
      .flags = PM_TYPE_FLAGS,
      .slots = slots,
  };
  return pm__api.PyType_FromSpec(&spec);
}

static PyObject *make(PyObject **type, pm_vectorcall function, void (*finalize)(PyObject *)) {
  if (*type == NULL) {
    made.base = pm__api_integer_attribute(pm__api.PyBaseObject_Type, "__basicsize__", 0);
    *type = made.base == 0 ? NULL : make_type(made.base, finalize);
  }
  PyObject *callable = *type == NULL ? NULL : pm__api.PyType_GenericAlloc(*type, 0);
  if (callable != NULL) memcpy((char *)callable + made.base, &function, sizeof function);
  pm__api.PyErr_Clear();
  return callable;
}

PyObject *pm__callable_new(pm_vectorcall function) { return make(&made.type, function, NULL); }

PyObject *pm__callable_canary(void (*gone)(void)) {
  made.canary_gone = gone;
  return make(&made.canary_type, do_nothing, finalize_canary);
}

void pm__callable_orphan(void) { made.type = made.canary_type = NULL; }
