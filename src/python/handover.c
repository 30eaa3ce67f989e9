/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the log report into Python's logging, on the main thread, in a pending call:
 * between two instructions of whatever runs there. That is like a signal handler, so:
 *
 * - It waits (`is_ready`) while the program stands in logging, in a method of a handler
 *   or of a handler's stream, or holds the lock of a handler's queue: such locks need not
 *   be reentrant, and we would wait for ourselves.
 * - No exception of a handler reaches the program. One that a signal's handler raised,
 *   or that is no Exception (KeyboardInterrupt), was meant for the program and does.
 * - The context is a new one, so that the rows do not bear a request's ids.
 *
 * Nothing is imported: a program that has not imported logging has no handlers either.
 * The samples of all that runs under `hand` are [pyrometer]'s (merge.c).
 */
#include "python/handover.h"

#include "python/api.h"
#include "python/python.h"
#include "python/state.h"

/* A call holds up the main thread this long and one row; more is for the next call. */
static const uint64_t patience_ns = 20000000u;

/* Names at module level are none of the program's: the namespace is our own. */
static const char source[] =
    "import sys\n"
    "import _signal\n"
    "INFO, NAME = 20, 'pyrometer'\n"
    "def handlers_of(logger):\n"
    "    found = []\n"
    "    while logger:\n"
    "        found += logger.handlers\n"
    "        logger = logger.propagate and logger.parent\n"
    "    return found\n"
    "def codes_of(thing):\n"
    "    methods = [m for kind in type(thing).__mro__ for m in vars(kind).values()]\n"
    "    return {m.__code__ for m in methods if type(m) is type(codes_of)}\n"
    "def is_locked(queue):\n"
    "    pipe = getattr(queue, '_notempty', None)\n"
    "    locks = getattr(queue, 'mutex', None), getattr(pipe, '_lock', None)\n"
    "    return any(lock.locked() for lock in locks if hasattr(lock, 'locked'))\n"
    "def is_ready():\n"
    "    logging = sys.modules.get('logging')\n"
    "    if not logging: return True\n"
    "    handlers = handlers_of(logging.getLogger(NAME))\n"
    "    parts = [getattr(handler, 'stream', None) for handler in handlers] + handlers\n"
    "    busy = set().union(*map(codes_of, parts))\n"
    "    frame = sys._getframe()\n"
    "    while frame:\n"
    "        module = str(frame.f_globals.get('__name__'))\n"
    "        if module.partition('.')[0] == 'logging' or frame.f_code in busy: return False\n"
    "        frame = frame.f_back\n"
    "    return not any(is_locked(getattr(handler, 'queue', None)) for handler in handlers)\n"
    "def log(logger, text, fields):\n"
    "    if not logger.hasHandlers(): return 'unhandled'\n"
    "    if not logger.isEnabledFor(INFO): return 'level'\n"
    "    extra = {NAME: fields}\n"
    "    logger.handle(logger.makeRecord(NAME, INFO, '(pyrometer)', 0, text, (), None, None, "
    "extra))\n"
    "    return ''\n"
    "def is_meant_for_program(error):\n"
    "    handlers = [_signal.getsignal(number) for number in _signal.valid_signals()]\n"
    "    codes = {getattr(handler, '__code__', None) for handler in handlers}\n"
    "    trace = error.__traceback__\n"
    "    while trace and trace.tb_frame.f_code not in codes: trace = trace.tb_next\n"
    "    return trace is not None\n"
    "def hand(text, fields):\n"
    "    try:\n"
    "        if not fields: return '' if is_ready() else 'later'\n"
    "        logging = sys.modules.get('logging')\n"
    "        if not logging: return 'unhandled'\n"
    "        import _contextvars\n"
    "        return _contextvars.Context().run(log, logging.getLogger(NAME), text, fields)\n"
    "    except Exception as error:\n"
    "        if is_meant_for_program(error): raise\n"
    "        return 'failed'\n";

/*
 * Owner:    the main thread, in pending calls; the collector only asks.
 * Readers:  the same.
 * Ordering: `asked` falls before the rows are taken, so a later row asks again.
 */
static struct {
  _Atomic uint32_t asked;
  bool handing; /* a handler that lets others run (greenlets) is under way */
  PyObject *hand;
} handover;

static PyObject *run_source(PyObject *names) {
  PyObject *code = pm__api.Py_CompileString(source, "<pyrometer>", PM_COMPILE_FILE);
  PyObject *result = code == NULL ? NULL : pm__api.PyEval_EvalCode(code, names, names);
  pm__api_release(code);
  return result;
}

/* Our function, made at its first use; NULL, perhaps with an exception set. */
static PyObject *find_hand(void) {
  if (handover.hand != NULL) return handover.hand;
  PyObject *names = pm__api_new_names();
  PyObject *result = names == NULL ? NULL : run_source(names);
  if (result != NULL) handover.hand = pm__api_dict_get_string(names, "hand");
  pm__api_release(result);
  pm__api_release(names);
  return handover.hand;
}

static PyObject *new_text(const char *text, size_t size) {
  return pm__api.PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
}

static PyObject *value_of(const json_t *value) {
  switch (json_typeof(value)) {
  case JSON_STRING: return new_text(json_string_value(value), json_string_length(value));
  case JSON_INTEGER: return pm__api.PyLong_FromLongLong(json_integer_value(value));
  case JSON_REAL: return pm__api.PyFloat_FromDouble(json_real_value(value));
  case JSON_TRUE: return pm__api.PyBool_FromLong(1);
  case JSON_FALSE: return pm__api.PyBool_FromLong(0);
  default: pm__api.Py_IncRef(pm__api_none()); return pm__api_none();
  }
}

/* A flat object as a dict; NULL with an exception set. */
static PyObject *dict_of(json_t *fields) {
  PyObject *dict = pm__api.PyDict_New();
  const char *key;
  json_t *field;
  json_object_foreach(fields, key, field) {
    PyObject *value = dict == NULL ? NULL : value_of(field);
    bool put = value != NULL && pm__api.PyDict_SetItemString(dict, key, value) == 0;
    pm__api_release(value);
    if (put) continue;
    pm__api_release(dict);
    return NULL;
  }
  return dict;
}

/* hand(text, fields), whose answer is a word: into `word`. False with an exception set. */
static bool call_hand(PyObject *text, PyObject *fields, char *word, size_t size) {
  PyObject *hand = text == NULL || fields == NULL ? NULL : find_hand();
  PyObject *arguments[] = {text, fields};
  PyObject *answer = hand == NULL ? NULL : pm__api.PyObject_Vectorcall(hand, arguments, 2, NULL);
  bool answered = answer != NULL && pm__api_text(answer, word, size);
  pm__api_release(answer);
  pm__api_release(text);
  pm__api_release(fields);
  return answered;
}

static bool is_ready(bool *ready) {
  char word[16];
  PyObject *nothing = pm__api.PyDict_New();
  if (!call_hand(new_text("", 0), nothing, word, sizeof word)) return false;
  *ready = word[0] == '\0';
  return true;
}

static bool hand_row(const struct pm_log_row *row) {
  const struct pm_python_hooks *hooks = &pm__python_session.hooks;
  char word[16] = "failed";
  bool handed = call_hand(new_text(row->text, row->size), dict_of(row->fields), word, sizeof word);
  hooks->row_done(row->owner, word);
  return handed;
}

/* False with the exception set that is to go up into the program. */
static bool hand_rows(void) {
  const struct pm_python_hooks *hooks = &pm__python_session.hooks;
  uint64_t end = pm__clock_monotonic() + patience_ns;
  struct pm_log_row row;
  bool ready = false;
  if (!is_ready(&ready)) return false;
  while (ready && pm__clock_monotonic() < end && hooks->next_row(&row)) {
    if (!hand_row(&row)) return false;
  }
  return true;
}

/* What went wrong in our own few lines: memory or the stack is short. The rows come back late. */
static bool is_ours(void) {
  PyObject *exception = pm__api.PyErr_GetRaisedException();
  if (exception == NULL) return true;
  bool ours =
      pm__api.PyErr_GivenExceptionMatches(exception, *(PyObject **)pm__api.PyExc_MemoryError) ||
      pm__api.PyErr_GivenExceptionMatches(exception, *(PyObject **)pm__api.PyExc_RecursionError);
  if (ours) {
    pm__api.Py_DecRef(exception);
  } else {
    pm__api.PyErr_SetRaisedException(exception);
  }
  return ours;
}

/* On the main thread, in the main interpreter, between two instructions. */
static int answer(void *context) {
  (void)context;
  atomic_store(&handover.asked, 0);
  if (!pm__api_usable() || handover.handing) return 0;
  handover.handing = true;
  bool handed = hand_rows();
  handover.handing = false;
  return handed || is_ours() ? 0 : -1;
}

static int do_nothing(void *context) {
  (void)context;
  return 0;
}

void pm__handover_remind(void) { pm__api.Py_AddPendingCall(do_nothing, NULL); }

bool pm__python_log_ask(void) {
  if (pm__api.Py_AddPendingCall == NULL || !pm__api_usable()) return false;
  if (pm__python_session.hooks.next_row == NULL) return false;
  if (atomic_exchange(&handover.asked, 1)) return true;
  if (pm__api.Py_AddPendingCall(answer, NULL) != 0) atomic_store(&handover.asked, 0);
  return true;
}

void pm__handover_forked(void) {
  atomic_store(&handover.asked, 0);
  handover.handing = false;
}

void pm__handover_orphan(void) { handover.hand = NULL; }
