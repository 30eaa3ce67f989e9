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

static bool read_events(void) {
  PyObject *events = pm__api.PyObject_GetAttrString(module(), "events");
  bool all = events != NULL;
  for (int kind = 0; all && kind < PM_EVENT_KINDS; kind++) {
    PyObject *value = pm__api.PyObject_GetAttrString(events, event_names[kind]);
    ours.events[kind] = value == NULL ? -1 : pm__api.PyLong_AsLong(value);
    all = ours.events[kind] > 0;
    pm__api_release(value);
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
  int used = snprintf(reason, size, "no sys.monitoring tool id is free:");
  for (size_t i = 0; i < PM_COUNT_OF(candidates) && used > 0 && (size_t)used < size; i++) {
    char name[64];
    tool_name_of(candidates[i], name, sizeof name);
    used += snprintf(reason + used, size - (size_t)used, "%s %d is held by '%s'", i == 0 ? "" : ",",
                     candidates[i], name);
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

static void give_back(int tool) {
  set_events(tool, 0);
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    register_callback(tool, ours.events[kind], pm__api_none());
  }
  done(pm__api.PyObject_CallMethod(module(), "free_tool_id", "i", tool));
}

bool pm__monitoring_attach(char *reason, size_t size) {
  if (module() == NULL || !read_events() || !make_callables()) {
    snprintf(reason, size, "sys.monitoring cannot be used in this Python");
    return false;
  }
  int tool = claim_any();
  if (tool < 0) {
    name_holders(reason, size);
    return false;
  }
  if (!register_all(tool)) {
    give_back(tool);
    snprintf(reason, size, "sys.monitoring refused the callbacks");
    return false;
  }
  ours.tool = tool;
  return true;
}

bool pm__monitoring_enable(void) { return set_events(ours.tool, all_events()); }

static bool name_is_ours(int tool) {
  char name[64];
  return tool >= 0 && tool_name_of(tool, name, sizeof name) && strcmp(name, tool_name) == 0;
}

bool pm__monitoring_is_ours(void) {
  if (!name_is_ours(ours.tool)) return false;
  PyObject *events = pm__api.PyObject_CallMethod(module(), "get_events", "i", (int)ours.tool);
  bool same = events != NULL && pm__api.PyLong_AsLong(events) == all_events();
  done(events);
  return same;
}

void pm__monitoring_detach(void) {
  if (module() != NULL && name_is_ours(ours.tool)) give_back(ours.tool);
  ours.tool = -1;
}

int pm__monitoring_tool(void) { return ours.tool; }

void pm__monitoring_orphan(void) {
  ours.tool = -1;
  memset(ours.callables, 0, sizeof ours.callables);
}
