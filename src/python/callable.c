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
  PyObject *type; /* kept while the interpreter lives */
  Py_ssize_t base; /* size of the base object */
} made;

static PyObject *make_type(Py_ssize_t base) {
  struct pm_member_def members[] = {
      {"__vectorcalloffset__", PM_MEMBER_SSIZE, base, PM_MEMBER_READONLY, NULL},
      {0},
  };
  void *call = NULL;
  memcpy(&call, &pm__api.PyVectorcall_Call, sizeof call);
  struct pm_type_slot slots[] = {
      {PM_SLOT_TP_CALL, call},
      {PM_SLOT_TP_MEMBERS, members},
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

PyObject *pm__callable_new(pm_vectorcall function) {
  if (made.type == NULL) {
    made.base = pm__api_integer_attribute(pm__api.PyBaseObject_Type, "__basicsize__", 0);
    made.type = made.base == 0 ? NULL : make_type(made.base);
  }
  PyObject *callable = made.type == NULL ? NULL : pm__api.PyType_GenericAlloc(made.type, 0);
  if (callable != NULL) memcpy((char *)callable + made.base, &function, sizeof function);
  pm__api.PyErr_Clear();
  return callable;
}

void pm__callable_orphan(void) { made.type = NULL; }
