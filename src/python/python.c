/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to the interpreter and letting go of it, step by step. */
#include "python/python.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/api.h"
#include "python/calibrate.h"
#include "python/callable.h"
#include "python/category.h"
#include "python/codes.h"
#include "python/cold.h"
#include "python/greenlets.h"
#include "python/late.h"
#include "python/local.h"
#include "python/monitoring.h"
#include "python/names.h"
#include "python/seed.h"
#include "python/state.h"

struct pm_python_session pm__python_session;

/* What the facts say of the last start. Written by start, stop and the ownership check. */
static struct {
  enum pm_python_state state;
  char reason[512];
  char version[64];
  bool free_threaded;
  uint32_t sessions; /* numbers given so far */
  bool watching_exit;
} status;

static enum pm_python_state end_as(enum pm_python_state state, const char *reason) {
  status.state = state;
  if (reason != status.reason) snprintf(status.reason, sizeof status.reason, "%s", reason);
  return state;
}

/* "3.13.0 experimental free-threading build (main, ...) [GCC ...]" */
static void read_version(void) {
  const char *text = pm__api.Py_GetVersion();
  size_t size = strcspn(text, " ");
  if (size >= sizeof status.version) size = sizeof status.version - 1;
  memcpy(status.version, text, size);
  status.version[size] = '\0';
  status.free_threaded = strstr(text, "free-threading") != NULL;
}

static bool is_supported(void) {
  char *end = NULL;
  long major = strtol(status.version, &end, 10);
  long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
  return major > 3 || (major == 3 && minor >= 12);
}

/* Monitoring beside CPython's JIT gives wrong results (python/cpython#156319). */
static bool is_jit_on(void) {
  PyObject *jit = pm__api.PySys_GetObject("_jit"); /* borrowed; 3.14 */
  PyObject *on = jit == NULL ? NULL : pm__api.PyObject_CallMethod(jit, "is_enabled", NULL);
  bool enabled = on != NULL && pm__api.PyLong_AsLong(on) == 1;
  pm__api_release(on);
  pm__api.PyErr_Clear();
  return enabled;
}

static void find_stdlib(void) {
  char file[4096];
  PyObject *path = pm__api_module_item("os", "__file__");
  bool found = pm__api_text(path, file, sizeof file);
  pm__api_release(path);
  char *slash = found ? strrchr(file, '/') : NULL;
  if (slash != NULL) *slash = '\0';
  pm__category_set_stdlib(slash != NULL ? file : "");
}

/* Runs at the very end of Py_Finalize: no Python may be called any more. */
static void interpreter_gone(void) {
  atomic_store(&pm__python_session.live, 0);
  atomic_store(&pm__python_session.phase, PM_PHASE_OFF);
  atomic_store(&pm__shadow_session, 0);
  pm__monitoring_orphan();
  pm__greenlets_orphan();
  pm__callable_orphan();
  pm__calibrate_forget();
  pm__codes_orphan();
  status.watching_exit = false;
}

static void watch_exit(void) {
  if (!status.watching_exit) status.watching_exit = pm__api.Py_AtExit(interpreter_gone) == 0;
}

/* From here on callbacks work. */
static void go_live(void) {
  uint32_t number = ++status.sessions;
  if (number == 0) number = ++status.sessions; /* 0 means none */
  atomic_store(&pm__shadow_session, number);
  atomic_store(&pm__python_session.phase, PM_PHASE_LIVE);
  atomic_store_explicit(&pm__python_session.live, number, memory_order_release);
}

static void go_off(void) {
  atomic_store(&pm__python_session.live, 0);
  atomic_store(&pm__python_session.phase, PM_PHASE_OFF);
  atomic_store(&pm__shadow_session, 0);
}

static enum pm_python_state attach(void) {
  if (is_jit_on()) {
    return end_as(
        PM_PYTHON_NATIVE_ONLY,
        "CPython's JIT is on (sys._jit.is_enabled()), and monitoring is not safe with it");
  }
  if (!pm__monitoring_attach(status.reason, sizeof status.reason)) {
    return end_as(PM_PYTHON_NATIVE_ONLY, status.reason);
  }
  find_stdlib();
  watch_exit();
  pm__greenlets_start();
  atomic_store(&pm__python_session.phase, PM_PHASE_CALIBRATING);
  if (!pm__monitoring_enable()) {
    go_off();
    pm__monitoring_detach();
    return end_as(PM_PYTHON_NATIVE_ONLY, "sys.monitoring refused the events");
  }
  pm__calibrate_run();
  go_live();
  pm__cold_seed_caller();
  pm__late_threads(status.free_threaded);
  return end_as(PM_PYTHON_ATTRIBUTED, "");
}

/* A child starts anew, and first gives back the tool id that it inherited. */
static void recover_from_fork(void) {
  if (!atomic_exchange(&pm__python_session.forked, 0)) return;
  pm__monitoring_detach();
  pm__codes_clear(false);
  pm__counters_reset();
}

static enum pm_python_state with_interpreter(enum pm_python_state (*step)(void)) {
  int gil = pm__api.PyGILState_Ensure();
  PyObject *exception = pm__api_save_exception();
  enum pm_python_state state = step();
  pm__api_restore_exception(exception);
  pm__api.PyGILState_Release(gil);
  return state;
}

static enum pm_python_state recover_and_attach(void) {
  recover_from_fork();
  return attach();
}

uintptr_t pm__python_address(void) { return (uintptr_t)pm__api_symbol("Py_GetVersion"); }

enum pm_python_state pm__python_start(const struct pm_python_hooks *hooks) {
  pm__python_session.hooks = *hooks;
  status.version[0] = '\0';
  status.free_threaded = false;
  const char *missing = pm__api_load();
  if (pm__api.Py_IsInitialized == NULL || pm__api.Py_GetVersion == NULL) {
    return end_as(PM_PYTHON_ABSENT, "there is no CPython in this process");
  }
  read_version();
  if (!is_supported()) {
    snprintf(status.reason, sizeof status.reason,
             "Python function attribution requires CPython 3.12 or newer (this is %s)",
             status.version);
    return end_as(PM_PYTHON_NATIVE_ONLY, status.reason);
  }
  if (missing != NULL) {
    snprintf(status.reason, sizeof status.reason, "this CPython lacks the public symbol %s",
             missing);
    return end_as(PM_PYTHON_NATIVE_ONLY, status.reason);
  }
  if (!pm__api_usable()) {
    return end_as(PM_PYTHON_ABSENT, "the Python interpreter is not running (yet, or any more)");
  }
  return with_interpreter(recover_and_attach);
}

static enum pm_python_state detach(void) {
  pm__monitoring_detach();
  return status.state;
}

void pm__python_stop(void) {
  go_off();
  if (pm__monitoring_tool() < 0 || !pm__api_usable()) return;
  with_interpreter(detach);
}

static enum pm_python_state clear_registry(void) {
  pm__codes_clear(true);
  return status.state;
}

void pm__python_reset(void) {
  pm__python_stop();
  if (pm__code_count() > 0 && pm__api_usable()) {
    with_interpreter(clear_registry);
  } else {
    pm__codes_clear(false);
  }
  pm__counters_reset();
  atomic_store(&pm__python_session.callback_failures, 0);
}

void pm__python_forked(void) {
  go_off();
  atomic_store(&pm__python_session.forked, 1);
  pm__local_forked();
  pm__codes_forked();
}

struct pm_python_facts pm__python_facts(void) {
  struct pm_python_facts facts = {
      .state = status.state,
      .reason = status.reason,
      .version = status.version,
      .free_threaded = status.free_threaded,
      .tool_id = pm__monitoring_tool(),
      .callback_failures = atomic_load(&pm__python_session.callback_failures),
      .unknown_ids = pm__counters_calls(0),
      .codes = pm__code_count(),
      .codes_unregistered = pm__codes_refused(),
  };
  pm__counters_cache(&facts.cache_hits, &facts.cache_misses);
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    facts.distance[kind] = (int32_t)pm__python_session.distance[kind];
  }
  return facts;
}

uint64_t pm__code_calls(uint32_t id) { return pm__counters_calls(id); }

static void tell_name(void *context, int32_t tid, unsigned long ident, const char *name) {
  (void)context, (void)ident;
  pm__python_session.hooks.name_thread(tid, name);
}

/* The GIL is at hand here: also the time to see whether another tool took our place. */
static enum pm_python_state refresh(void) {
  if (pm__python_session.hooks.name_thread != NULL) pm__names_each(tell_name, NULL);
  if (pm__monitoring_tool() < 0 || pm__monitoring_is_ours()) return status.state;
  go_off();
  return end_as(PM_PYTHON_NATIVE_ONLY, "another tool took sys.monitoring's place away from us");
}

void pm__python_refresh_names(void) {
  bool running = atomic_load(&pm__python_session.live) != 0;
  if (running && pm__api_usable()) with_interpreter(refresh);
}
