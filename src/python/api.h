/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public CPython functions this folder calls, looked up at run time: one
 * library serves every CPython, and processes without one. Nothing private is
 * used; layouts below are those of the stable ABI.
 */
#ifndef PM_PYTHON_API_H
#define PM_PYTHON_API_H

#include <sys/types.h>

#include "base/base.h"

typedef struct _object PyObject; /* never looked into */
typedef ssize_t Py_ssize_t;
typedef PyObject *(*pm_vectorcall)(PyObject *callable, PyObject *const *args, size_t nargsf,
                                   PyObject *kwnames);

struct pm_type_slot {
  int slot;
  void *content;
};
struct pm_type_spec {
  const char *name;
  int basicsize;
  int itemsize;
  unsigned int flags;
  struct pm_type_slot *slots;
};
struct pm_member_def {
  const char *name;
  int type;
  Py_ssize_t offset;
  int flags;
  const char *doc;
};

enum {
  PM_SLOT_TP_CALL = 50,
  PM_SLOT_TP_INIT = 60,
  PM_SLOT_TP_MEMBERS = 72,
  PM_SLOT_TP_FINALIZE = 80,
  PM_MEMBER_SSIZE = 19,
  PM_MEMBER_READONLY = 1,
  PM_TYPE_FLAGS = 1 << 18 | 1 << 11 | 1 << 7, /* DEFAULT, HAVE_VECTORCALL, no instantiation */
  PM_TYPE_FLAGS_PLAIN = 1 << 18,                    /* DEFAULT */
  PM_COMPILE_FILE = 257,                      /* Py_file_input */
};

/* F(optional, result, name, arguments): a function; without one of the required there is no attribution. */
#define PM_API_FUNCTIONS(F)                                                                  \
  F(0, int, Py_IsInitialized, (void))                                                        \
  F(0, const char *, Py_GetVersion, (void))                                                  \
  F(0, int, Py_AtExit, (void (*)(void)))                                                     \
  F(1, void *, PyGILState_GetThisThreadState, (void))                                        \
  F(0, int, PyGILState_Ensure, (void))                                                       \
  F(0, void, PyGILState_Release, (int))                                                      \
  F(0, void *, PyEval_SaveThread, (void))                                                    \
  F(0, void, PyEval_RestoreThread, (void *))                                                 \
  F(0, void *, PyInterpreterState_Head, (void))                                              \
  F(0, void *, PyInterpreterState_Main, (void))                                              \
  F(0, void *, PyThreadState_New, (void *))                                                  \
  F(0, void, PyThreadState_Clear, (void *))                                                  \
  F(0, void, PyThreadState_DeleteCurrent, (void))                                            \
  F(0, void *, PyThreadState_GetInterpreter, (void *))                                       \
  F(1, void *, PyThreadState_GetUnchecked, (void))   /* 3.13 */                              \
  F(1, void *, PyInterpreterState_ThreadHead, (void *))                                      \
  F(1, void *, PyThreadState_Next, (void *))                                                 \
  F(1, PyObject *, PyThreadState_GetFrame, (void *))                                         \
  F(1, void, PyUnstable_GC_VisitObjects, (int (*)(PyObject *, void *), void *))              \
  F(1, void *, _PyThreadState_UncheckedGet, (void)) /* its name up to 3.12 */                \
  F(0, int, Py_AddPendingCall, (int (*)(void *), void *))                                    \
  F(0, void, Py_IncRef, (PyObject *))                                                        \
  F(0, void, Py_DecRef, (PyObject *))                                                        \
  F(0, PyObject *, PyErr_GetRaisedException, (void))                                         \
  F(0, void, PyErr_SetRaisedException, (PyObject *))                                         \
  F(0, int, PyErr_GivenExceptionMatches, (PyObject *, PyObject *))                           \
  F(0, void, PyErr_Clear, (void))                                                            \
  F(0, PyObject *, PyType_FromSpec, (struct pm_type_spec *))                                 \
  F(0, PyObject *, PyType_FromSpecWithBases, (struct pm_type_spec *, PyObject *))            \
  F(0, PyObject *, PyType_GenericAlloc, (PyObject *, Py_ssize_t))                            \
  F(0, PyObject *, PyVectorcall_Call, (PyObject *, PyObject *, PyObject *))                  \
  F(0, PyObject *, PyEval_GetFrame, (void))                                                  \
  F(0, PyObject *, PyEval_EvalCode, (PyObject *, PyObject *, PyObject *))                    \
  F(0, PyObject *, Py_CompileString, (const char *, const char *, int))                      \
  F(0, PyObject *, PyFrame_GetBack, (PyObject *))                                            \
  F(0, PyObject *, PyFrame_GetCode, (PyObject *))                                            \
  F(0, PyObject *, PyFrame_GetGlobals, (PyObject *))                                         \
  F(0, PyObject *, PyFrame_GetVarString, (PyObject *, const char *))                         \
  F(0, PyObject *, PyObject_GetAttrString, (PyObject *, const char *))                       \
  F(0, PyObject *, PyObject_GenericGetAttr, (PyObject *, PyObject *))                        \
  F(0, PyObject *, PyObject_CallMethod, (PyObject *, const char *, const char *, ...))       \
  F(0, PyObject *, PyObject_CallNoArgs, (PyObject *))                                        \
  F(0, PyObject *, PyObject_CallOneArg, (PyObject *, PyObject *))                            \
  F(0, PyObject *, PyObject_Vectorcall, (PyObject *, PyObject *const *, size_t, PyObject *)) \
  F(0, PyObject *, PySys_GetObject, (const char *))                                          \
  F(0, PyObject *, PyModule_GetDict, (PyObject *))                                           \
  F(0, PyObject *, PyDict_New, (void))                                                       \
  F(0, PyObject *, PyDict_Copy, (PyObject *))                                                \
  F(0, void, PyDict_Clear, (PyObject *))                                                     \
  F(0, int, PyDict_Next, (PyObject *, Py_ssize_t *, PyObject **, PyObject **))               \
  F(0, int, PyDict_SetItemString, (PyObject *, const char *, PyObject *))                    \
  F(0, PyObject *, PyDict_GetItemWithError, (PyObject *, PyObject *))                        \
  F(1, int, PyDict_GetItemRef, (PyObject *, PyObject *, PyObject **))                        \
  F(0, long, PyLong_AsLong, (PyObject *))                                                    \
  F(0, PyObject *, PyLong_FromUnsignedLong, (unsigned long))                                 \
  F(0, unsigned long, PyLong_AsUnsignedLong, (PyObject *))                                   \
  F(0, PyObject *, PyLong_FromLongLong, (long long))                                         \
  F(0, PyObject *, PyFloat_FromDouble, (double))                                             \
  F(0, PyObject *, PyBool_FromLong, (long))                                                  \
  F(0, PyObject *, PyUnicode_FromString, (const char *))                                     \
  F(0, PyObject *, PyUnicode_DecodeUTF8, (const char *, Py_ssize_t, const char *))           \
  F(0, const char *, PyUnicode_AsUTF8AndSize, (PyObject *, Py_ssize_t *))                    \
  F(0, PyObject *, PyUnicode_AsEncodedString, (PyObject *, const char *, const char *))      \
  F(0, int, PyBytes_AsStringAndSize, (PyObject *, char **, Py_ssize_t *))                    \
  F(0, unsigned long, PyThread_get_thread_ident, (void))                                     \
  F(0, int, PyThreadState_SetAsyncExc, (unsigned long, PyObject *))                          \
  F(0, PyObject *, PyObject_Type, (PyObject *))                                              \
  F(1, int, Py_IsFinalizing, (void))  /* 3.13 */                                             \
  F(1, int, _Py_IsFinalizing, (void)) /* its name up to 3.12 */

/* D(name): a data symbol. */
#define PM_API_DATA(D) \
  D(_Py_NoneStruct)    \
  D(PyBaseObject_Type) \
  D(PyExc_MemoryError) \
  D(PyExc_NameError)   \
  D(PyExc_TypeError)   \
  D(PyExc_RecursionError)

struct pm_api {
#define PM_API_FIELD(optional, result, name, arguments) result(*name) arguments;
#define PM_API_DATA_FIELD(name) void *name;
  PM_API_FUNCTIONS(PM_API_FIELD)
  PM_API_DATA(PM_API_DATA_FIELD)
#undef PM_API_FIELD
#undef PM_API_DATA_FIELD
};

/*
 * Owner:    pm__api_load, in a start; constant between then and the next start.
 * Readers:  this folder, with the GIL held.
 * Ordering: callbacks exist only after the load.
 */
extern struct pm_api pm__api;

/* The immortal None, new references to which need no counting. */
static inline PyObject *pm__api_none(void) { return pm__api._Py_NoneStruct; }

/* Does a plain look-up find CPython? Where it is a plugin's private library it does not. */
bool pm__api_is_global(void);
/* Looks everything up again. The first missing name, or NULL; "Py_IsInitialized": no CPython here. */
const char *pm__api_load(void);

/* A symbol of this process's CPython, wherever it is loaded; NULL: none. Any thread. */
void *pm__api_symbol(const char *name);

/* May Python be called at all: initialised and not being taken down? */
bool pm__api_usable(void);

/* For code that must leave the caller's pending exception as it found it. */
static inline PyObject *pm__api_save_exception(void) { return pm__api.PyErr_GetRaisedException(); }
static inline void pm__api_restore_exception(PyObject *exception) {
  pm__api.PyErr_Clear();
  if (exception != NULL) pm__api.PyErr_SetRaisedException(exception);
}

/* Py_XDECREF. */
static inline void pm__api_release(PyObject *object) {
  if (object != NULL) pm__api.Py_DecRef(object);
}

/*
 * New references; NULL, with no exception set, where there is nothing. None of
 * them runs Python code: dictionaries are exact, attributes are found by the
 * generic look-up even where a class overrides it.
 */
PyObject *pm__api_dict_get(PyObject *dict, PyObject *key);
PyObject *pm__api_dict_get_string(PyObject *dict, const char *key);
PyObject *pm__api_attribute(PyObject *object, const char *name);
/* The namespace of an imported module. */
PyObject *pm__api_module_names(const char *module);
/* A new namespace with the interpreter's builtins, not those of whatever frame is running. */
PyObject *pm__api_new_names(void);
/* A name in a module's namespace; NULL when the module is not there. */
PyObject *pm__api_module_item(const char *module, const char *name);

/*
 * The text of a str as UTF-8, cut to `capacity` - 1 bytes between characters;
 * lone surrogates and NULs become backslash escapes, a cut shows as dots. False for
 * what is no str.
 */
bool pm__api_text(PyObject *string, char *out, size_t capacity);

/* An int attribute; `otherwise` when it is missing or no int that fits. */
long pm__api_integer_attribute(PyObject *object, const char *name, long otherwise);

#endif /* PM_PYTHON_API_H */
