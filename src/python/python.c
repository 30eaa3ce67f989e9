/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to the interpreter and letting go of it, step by step. */
#include "python/python.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/api.h"
#include "python/arrival.h"
#include "python/calibrate.h"
#include "python/callable.h"
#include "python/category.h"
#include "python/codes.h"
#include "python/cold.h"
#include "python/greenlets.h"
#include "python/handover.h"
#include "python/jit.h"
#include "python/late.h"
#include "python/local.h"
#include "python/monitoring.h"
#include "python/names.h"
#include "python/place.h"
#include "python/price.h"
#include "python/seed.h"
#include "python/state.h"
#include "python/untold_learn.h"
#include "python/visit.h"

enum { EVENTS_WAIT_MS = 1000 };

struct pm_python_session pm__python_session;

/* What the facts say of the last start. Written by start, stop and the ownership check. */
static struct {
  enum pm_python_state state;
  char reason[512];
  char version[64];
  uint32_t sessions; /* numbers given so far */
  bool watching_exit;
  bool put_off; /* to when the interpreter lets us in */
  bool guest; /* the thread that attaches is none of the program's */
  _Atomic bool entered; /* between a start that reached the interpreter and its stop */
  _Atomic bool had_others; /* subinterpreters were seen in this session */
  uint64_t live_ns;        /* when the session went live */
} status;

static const char no_python[] = "there is no CPython in this process";

static enum pm_python_state end_as(enum pm_python_state state, const char *reason) {
  status.state = state;
  status.put_off = false;
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
  pm__python_session.free_threaded = strstr(text, "free-threading") != NULL;
}

static bool is_supported(void) {
  char *end = NULL;
  long major = strtol(status.version, &end, 10);
  long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
  return major > 3 || (major == 3 && minor >= 12);
}

/* The folder `levels` above a module's file. */
static bool find_folder(const char *module, int levels, char *out, size_t size) {
  PyObject *path = pm__api_module_item(module, "__file__");
  bool found = pm__api_text(path, out, size);
  pm__api_release(path);
  for (int i = 0; i < levels && found; i++) {
    char *slash = strrchr(out, '/');
    found = slash != NULL;
    if (found) *slash = '\0';
  }
  return found;
}

/* Very early, or without `site`, `os` may not be there; `encodings` always is. */
static void find_stdlib(void) {
  char folder[4096];
  bool found = find_folder("os", 1, folder, sizeof folder) ||
               find_folder("encodings", 2, folder, sizeof folder);
  pm__category_set_stdlib(found ? folder : "");
}

void pm__python_go_off(void) {
  atomic_store(&pm__python_session.live, 0);
  atomic_store(&pm__python_session.paused, 0);
  atomic_store(&pm__python_session.phase, PM_PHASE_OFF);
  atomic_store(&pm__shadow_session, 0);
}

/* Runs at the very end of Py_Finalize: no Python may be called any more. */
static void interpreter_gone(void) {
  pm__python_go_off();
  pm__monitoring_orphan();
  pm__greenlets_orphan();
  pm__callable_orphan();
  pm__handover_orphan();
  pm__calibrate_forget();
  pm__untold_orphan();
  pm__price_orphan();
  pm__codes_orphan();
  status.watching_exit = status.entered = false;
}

static void watch_exit(void) {
  if (!status.watching_exit) status.watching_exit = pm__api.Py_AtExit(interpreter_gone) == 0;
}

void pm__python_go_live(void) {
  if (++status.sessions == PM_HOT_NEVER) status.sessions = 1; /* nor is 0 a number */
  uint32_t number = status.sessions;
  pm__python_session.none = pm__api_none();
  atomic_store(&pm__shadow_session, number);
  atomic_store(&pm__python_session.phase, PM_PHASE_LIVE);
  if (!atomic_exchange(&pm__python_session.paused, 0)) status.live_ns = pm__clock_monotonic();
  atomic_store_explicit(&pm__python_session.live, number, memory_order_release);
}

/* Whoever lost it could not write the reason: that is for the holder of the session. */
static void note_loss(void) {
  struct pm_place_loss loss = pm__place_loss();
  if (loss.reason == NULL || status.state != PM_PYTHON_ATTRIBUTED) return;
  status.state = PM_PYTHON_NATIVE_ONLY;
  snprintf(status.reason, sizeof status.reason, "%s (found %.1f s after the start)", loss.reason,
           (double)(loss.ns - status.live_ns) / 1e9);
}

/* `visiting`: the caller's frames are not those of this visit: it runs in a subinterpreter, or is ours. */
static enum pm_python_state attach(bool visiting) {
  if (pm__jit_is_on() || pm__jit_is_wanted()) {
    return end_as(PM_PYTHON_NATIVE_ONLY, PM_JIT_REASON);
  }
  if (!pm__monitoring_attach(status.reason, sizeof status.reason, pm__place_dropped)) {
    return end_as(PM_PYTHON_NATIVE_ONLY, status.reason);
  }
  find_stdlib();
  watch_exit();
  pm__greenlets_start();
  if (!visiting) pm__price_begin();
  atomic_store(&pm__python_session.phase, PM_PHASE_CALIBRATING);
  if (!pm__monitoring_enable()) {
    pm__python_go_off();
    pm__monitoring_detach();
    return end_as(PM_PYTHON_NATIVE_ONLY, "sys.monitoring refused the events");
  }
  pm__calibrate_run();
  pm__python_go_live();
  if (!visiting) pm__cold_seed_caller();
  if (!visiting) pm__price_end();
  pm__late_threads(pm__python_session.free_threaded);
  return end_as(PM_PYTHON_ATTRIBUTED, "");
}

/* What a forked child has of its parent's is let go unread. */
static void forget_counts(void) {
  pm__codes_clear(false);
  pm__counters_reset();
}

/* A child starts anew, and first gives back the tool id that it inherited. */
static void recover_from_fork(void) {
  if (!atomic_exchange(&pm__python_session.forked, 0)) return;
  pm__monitoring_detach();
  forget_counts();
}

/* Runs a step in the main interpreter, with its GIL; false without memory. */
static bool in_main_interpreter(void (*step)(bool visiting)) {
  struct pm_visit visit;
  if (!pm__visit_begin(&visit)) return false;
  PyObject *exception = pm__api_save_exception();
  step(visit.made != NULL);
  pm__api_restore_exception(exception);
  pm__visit_end(&visit);
  return true;
}

static void reset_counts(void) {
  pm__counters_reset();
  atomic_store(&pm__python_session.callback_failures, 0);
}

/* What an earlier session left is let go here, where the GIL is at hand. */
static void renew_and_attach(bool visiting) {
  atomic_store(&pm__python_session.attaching, 1);
  recover_from_fork();
  pm__codes_clear(true);
  reset_counts();
  status.had_others = false;
  status.entered = true;
  attach(visiting || status.guest);
  atomic_store(&pm__python_session.attaching, 0);
}

uintptr_t pm__python_address(void) { return (uintptr_t)pm__api_symbol("Py_GetVersion"); }

static enum pm_python_state start(void) {
  pm__place_forget_loss();
  const char *missing = pm__api_load();
  if (pm__api.Py_IsInitialized == NULL || pm__api.Py_GetVersion == NULL) {
    status.version[0] = '\0';
    pm__python_session.free_threaded = false;
    return end_as(PM_PYTHON_ABSENT, no_python);
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
  if (!in_main_interpreter(renew_and_attach)) {
    return end_as(PM_PYTHON_NATIVE_ONLY, "memory is short");
  }
  return status.state;
}

static void tell_name(void *context, int32_t tid, unsigned long ident, const char *name) {
  (void)context, (void)ident;
  pm__python_session.hooks.name_thread(tid, name);
}

static void check(bool visiting) {
  (void)visiting;
  pm__place_check();
}

static void refresh(bool visiting) {
  (void)visiting;
  if (pm__python_session.hooks.name_thread != NULL) pm__names_each(tell_name, NULL);
  pm__place_check();
}

/* The GIL may be long in coming, so all that needs it is done in one visit. */
static void detach(bool visiting) {
  refresh(visiting);
  pm__python_go_off();
  pm__monitoring_detach();
}

/*
 * Without a GIL a thread may be held up in the middle of an event's cold path; what
 * it holds must not be given to others meanwhile. (The hot path it has left: to
 * switch the events off, CPython stops all threads outside of it.) Bounded.
 */
static void wait_for_events(void) {
  uint64_t deadline = pm__clock_monotonic() + EVENTS_WAIT_MS * UINT64_C(1000000);
  void *gil = pm__python_release_gil();
  while (atomic_load(&pm__python_session.cold) > 0 && pm__clock_monotonic() < deadline) {
    sched_yield();
  }
  pm__python_take_gil(gil);
}

void pm__python_stop(void) {
  pm__arrival_end();
  if (status.entered && pm__api_usable()) in_main_interpreter(detach);
  pm__python_go_off();
  if (atomic_load(&pm__python_session.cold) > 0) wait_for_events();
  status.entered = false;
}

static void clear_registry(bool visiting) {
  (void)visiting;
  pm__codes_clear(true);
}

void pm__python_reset(void) {
  pm__python_stop();
  bool references = pm__code_count() > 0 && pm__api_usable();
  if (!references || !in_main_interpreter(clear_registry)) pm__codes_clear(false);
  reset_counts();
}

enum pm_python_state pm__python_start(const struct pm_python_hooks *hooks, bool guest) {
  pm__python_session.hooks = *hooks;
  status.guest = guest;
  enum pm_python_state state = start();
  if (!status.entered) pm__python_reset();
  return state;
}

enum pm_python_state pm__python_put_off(const struct pm_python_hooks *hooks) {
  if (atomic_load(&pm__python_session.forked)) {
    forget_counts();
  } else {
    pm__python_reset();
  }
  pm__python_session.hooks = *hooks;
  end_as(PM_PYTHON_ABSENT, "the Python interpreter has not let us in yet");
  status.put_off = true;
  return status.state;
}

void pm__python_forked(void) {
  pm__arrival_forked();
  atomic_store(&pm__python_session.attaching, 0);
  bool was_live = pm__python_is_attached();
  pm__python_go_off();
  atomic_store(&pm__python_session.cold, 0);
  status.entered = false;
  pm__place_forked();
  pm__handover_forked();
  atomic_store(&pm__python_session.forked, 1);
  atomic_store(&pm__python_session.child_waits, was_live);
  pm__local_forked();
  pm__codes_forked();
}

struct pm_python_facts pm__python_facts(void) {
  note_loss();
  struct pm_python_facts facts = {
      .state = status.state,
      .reason = status.put_off && pm__api.Py_IsInitialized == NULL ? no_python : status.reason,
      .version = status.version,
      .free_threaded = pm__python_session.free_threaded,
      .tool_id = pm__monitoring_tool(),
      .callback_failures = atomic_load(&pm__python_session.callback_failures),
      .unknown_ids = pm__counters_calls(0),
      .codes = pm__code_count(),
      .codes_unregistered = pm__codes_refused(),
  };
  pm__counters_lookups(&facts.codes_met, &facts.events_missed);
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    facts.distance[kind] = (int32_t)pm__python_session.distance[kind];
  }
  return facts;
}

uint64_t pm__code_calls(uint32_t id) { return pm__counters_calls(id); }

void pm__python_refresh_names(void) {
  if (status.entered && pm__api_usable()) in_main_interpreter(refresh);
}

void pm__python_check(void) {
  if (status.entered && pm__api_usable()) in_main_interpreter(check);
}

bool pm__python_had_subinterpreters(void) {
  if (status.entered && pm__api_usable() && pm__visit_has_others()) status.had_others = true;
  return status.had_others;
}
