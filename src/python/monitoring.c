/* SPDX-License-Identifier: Apache-2.0 */
/* sys.monitoring, spoken to as Python code would: by its attributes and functions. */
#include "python/monitoring.h"

#include <stdio.h>
#include <string.h>

#include "python/api.h"
#include "python/callable.h"
#include "python/callbacks.h"

/* 0 to 2 belong to debuggers, coverage and profilers: cProfile must find 2 free. */
static const int candidates[] = {4, 3, 5};
enum { TOOL_IDS = 6 };
static const char tool_name[] = "pyrometer";

static const char *const event_names[PM_EVENT_KINDS] = {
    [PM_EVENT_START] = "PY_START", [PM_EVENT_RESUME] = "PY_RESUME",
    [PM_EVENT_THROW] = "PY_THROW", [PM_EVENT_RETURN] = "PY_RETURN",
    [PM_EVENT_YIELD] = "PY_YIELD", [PM_EVENT_UNWIND] = "PY_UNWIND",
};

/*
 * Owner:    start and stop, with the GIL.
 * Readers:  none but them; `tool` also diagnostics.
 * Ordering: none needed.
 */
static struct {
  _Atomic int tool; /* -1: none */
  long events[PM_EVENT_KINDS];
  long on; /* the events that are switched on */
  long unused_event; /* never switched on: where the canary sits */
  void (*lost)(void);
  /* Made once and never freed: on free-threaded builds a call may be under way at any time. */
  PyObject *callables[PM_EVENT_KINDS];
} ours = {.tool = -1};

/* Borrowed; NULL where this Python has none. */
static PyObject *module(void) { return pm__api.PySys_GetObject("monitoring"); }

/* Drops the result or the exception of a call; did it succeed? */
static bool done(PyObject *result) {
  if (result == NULL) pm__api.PyErr_Clear();
  pm__api_release(result);
  return result != NULL;
}

static bool tool_name_of(int tool, char *name, size_t size) {
  name[0] = '\0';
  PyObject *held = pm__api.PyObject_CallMethod(module(), "get_tool", "i", tool);
  bool taken = held != NULL && held != pm__api_none();
  if (taken && !pm__api_text(held, name, size)) snprintf(name, size, "an unnamed tool");
  done(held);
  return taken;
}

static bool claim(int tool) {
  return done(pm__api.PyObject_CallMethod(module(), "use_tool_id", "is", tool, tool_name));
}

static bool set_events(int tool, long events) {
  return done(pm__api.PyObject_CallMethod(module(), "set_events", "il", tool, events));
}

static bool register_callback(int tool, long event, PyObject *callable) {
  return done(
      pm__api.PyObject_CallMethod(module(), "register_callback", "ilO", tool, event, callable));
}

static bool read_event(PyObject *events, const char *name, long *event) {
  PyObject *value = pm__api.PyObject_GetAttrString(events, name);
  *event = value == NULL ? -1 : pm__api.PyLong_AsLong(value);
  pm__api_release(value);
  return *event > 0;
}

static bool read_events(void) {
  PyObject *events = pm__api.PyObject_GetAttrString(module(), "events");
  bool all = events != NULL && read_event(events, "INSTRUCTION", &ours.unused_event);
  for (int kind = 0; all && kind < PM_EVENT_KINDS; kind++) {
    all = read_event(events, event_names[kind], &ours.events[kind]);
  }
  pm__api_release(events);
  pm__api.PyErr_Clear();
  return all;
}

static long all_events(void) {
  long mask = 0;
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) mask |= ours.events[kind];
  return mask;
}

static bool make_callables(void) {
  bool all = true;
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    if (ours.callables[kind] == NULL) ours.callables[kind] = pm__callable_new(pm__callbacks[kind]);
    all = all && ours.callables[kind] != NULL;
  }
  return all;
}

static void name_holders(char *reason, size_t size) {
  int used = snprintf(reason, size, "no sys.monitoring tool id from 3 to 5 is free");
  const char *between = ": ";
  for (int tool = 0; tool < TOOL_IDS && used > 0 && (size_t)used < size; tool++) {
    char name[48];
    if (!tool_name_of(tool, name, sizeof name)) continue;
    used += snprintf(reason + used, size - (size_t)used, "%s'%s' holds %d", between, name, tool);
    between = ", ";
  }
}

static int claim_any(void) {
  for (size_t i = 0; i < PM_COUNT_OF(candidates); i++) {
    if (claim(candidates[i])) return candidates[i];
  }
  return -1;
}

static bool register_all(int tool) {
  bool all = true;
  for (int kind = 0; all && kind < PM_EVENT_KINDS; kind++) {
    all = register_callback(tool, ours.events[kind], ours.callables[kind]);
  }
  return all;
}

/* Dropped by anybody but ourselves, it tells of our loss. */
static void canary_gone(void) {
  if (ours.tool >= 0 && ours.lost != NULL) ours.lost();
}

static bool register_canary(int tool) {
  PyObject *canary = pm__callable_canary(canary_gone);
  bool good = canary != NULL && register_callback(tool, ours.unused_event, canary);
  pm__api_release(canary);
  return good;
}

static void give_back(int tool) {
  set_events(tool, 0);
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    register_callback(tool, ours.events[kind], pm__api_none());
  }
  register_callback(tool, ours.unused_event, pm__api_none());
  done(pm__api.PyObject_CallMethod(module(), "free_tool_id", "i", tool));
}

static long events_of(int tool) {
  PyObject *events = pm__api.PyObject_CallMethod(module(), "get_events", "i", tool);
  long mask = events == NULL ? -1 : pm__api.PyLong_AsLong(events);
  done(events);
  return mask;
}

/* Takes our callback out of a tool's place; another one stays. Was it another? */
static bool take_out(int tool, long event, const PyObject *callable) {
  PyObject *found = pm__api.PyObject_CallMethod(module(), "register_callback", "ilO", tool, event,
                                                pm__api_none());
  bool other = found != NULL && found != pm__api_none() && found != callable;
  if (other) register_callback(tool, event, found);
  done(found);
  return other;
}

/* The place has a new tenant. Our events go too, unless it has made use of them. */
static void leave_to_tenant(int tool) {
  bool used = false;
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    used = take_out(tool, ours.events[kind], ours.callables[kind]) || used;
  }
  if (!used && events_of(tool) == all_events()) set_events(tool, 0);
}

bool pm__monitoring_attach(char *reason, size_t size, void (*lost)(void)) {
  if (module() == NULL || !read_events() || !make_callables()) {
    snprintf(reason, size, "sys.monitoring cannot be used in this Python");
    return false;
  }
  int tool = claim_any();
  if (tool < 0) {
    name_holders(reason, size);
    return false;
  }
  ours.lost = lost;
  if (!register_all(tool) || !register_canary(tool)) {
    give_back(tool);
    snprintf(reason, size, "sys.monitoring refused the callbacks");
    return false;
  }
  ours.tool = tool;
  return true;
}

static bool switch_to(long events) {
  if (!set_events(ours.tool, events)) return false;
  ours.on = events;
  return true;
}

bool pm__monitoring_enable(void) { return switch_to(all_events()); }
bool pm__monitoring_disable(void) { return switch_to(0); }

static bool name_is_ours(int tool) {
  char name[64];
  return tool >= 0 && tool_name_of(tool, name, sizeof name) && strcmp(name, tool_name) == 0;
}

bool pm__monitoring_is_ours(void) {
  return name_is_ours(ours.tool) && events_of(ours.tool) == ours.on;
}

void pm__monitoring_detach(void) {
  int tool = atomic_exchange(&ours.tool, -1); /* what is dropped from here on is no loss */
  if (tool < 0 || module() == NULL) return;
  if (name_is_ours(tool) || claim(tool)) {
    give_back(tool);
  } else {
    leave_to_tenant(tool);
  }
}

int pm__monitoring_tool(void) { return ours.tool; }

void pm__monitoring_orphan(void) {
  ours.tool = -1;
  memset(ours.callables, 0, sizeof ours.callables);
}
