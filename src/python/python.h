/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python: what CPython's public API and PEP 669 tell: shadow stacks, code
 * objects, calls. No Python.h: everything is looked up at run time.
 * Called by: session, and by the interpreter (monitoring callbacks).
 * Locks: one mutex around the code registry, one around the list of thread blocks;
 * neither is held while Python is called.
 */
#ifndef PM_PYTHON_PYTHON_H
#define PM_PYTHON_PYTHON_H

#include <jansson.h>

#include "base/base.h"
#include "signal/shadow.h"
#include "signal/walk.h"

enum pm_python_state {
  PM_PYTHON_ABSENT,      /* no interpreter in this process */
  PM_PYTHON_NATIVE_ONLY, /* there is one, but its frames cannot be had: see the reason */
  PM_PYTHON_ATTRIBUTED,
};

/* A text for Python's logging, with what it says as a flat JSON object. */
struct pm_log_row {
  const char *text;
  size_t size;
  json_t *fields;
  void *owner; /* for row_done */
};

/* What this folder needs of its siblings, given by the session. */
struct pm_python_hooks {
  /*
   * The calling thread's shadow stack; the thread is registered and the shadow
   * made when needed. NULL: no slot left (beyond max_threads) or no memory.
   */
  struct pm_shadow *(*shadow_of_caller)(void);
  /*
   * The shadow stack of thread `tid`, as above; may be NULL. Called in
   * pm__python_start with the GIL held, for Python threads that run already.
   */
  struct pm_shadow *(*shadow_of_thread)(int32_t tid);
  /* The caller's native stack from the caller of this function outward; false if it cannot be had. */
  void (*walk_here)(struct pm_walk *walk);
  /* Start and end of the function (FDE) that covers pc; false where none does. */
  bool (*function_at)(uintptr_t pc, uintptr_t *start);
  /* The Python name of thread `tid`, UTF-8; called on that thread or with the GIL held. */
  void (*name_thread)(int32_t tid, const char *name);
  /* At the first event in a forked child, GIL held, outside at-fork hooks; may start a session. */
  void (*in_forked_child)(void);
  /* The next row for logging, the caller's until row_done; false: none. NULL: there never is one. */
  bool (*next_row)(struct pm_log_row *row);
  /*
   * What became of a row: "" when it is logged, "level" when its level is not wanted, else
   * why logging did not take it: "unhandled" (no handler), "failed".
   */
  void (*row_done)(void *owner, const char *outcome);
};

/* An address in the interpreter's code, whose unwind tables calibration needs; 0 without one. */
uintptr_t pm__python_address(void);

/*
 * Attaches to the main interpreter, whichever calls: takes a tool id, calibrates,
 * seeds the caller's stack and switches the six events on. Takes the GIL when there is an
 * interpreter. Returns the state; never fails otherwise. Exceptions pending in
 * the calling thread are kept. `guest`: that thread is ours, not one to be seen.
 */
enum pm_python_state pm__python_start(const struct pm_python_hooks *hooks, bool guest);

/* In place of a start, for a session that attaches when Python lets it in (arrival.h). */
enum pm_python_state pm__python_put_off(const struct pm_python_hooks *hooks);

/* Switches the events off and gives the tool id back. Codes and counts stay readable. */
void pm__python_stop(void);

/*
 * Switches the events off for a while, or on again, in a session that is attached: takes the
 * GIL. While they are off no thread shows Python frames. False: the session has lost its
 * place meanwhile, or Python refused. One thread at a time, not the collector.
 */
bool pm__python_switch(bool on);
/* How often a thread has met a code it did not know since events came on, summed up. No GIL. */
uint64_t pm__python_codes_met(void);
/* What an event costs, ns of CPU, as timed at the first start; a usual figure until then. */
double pm__python_event_ns(void);
/* Are the events of an attached session on, or off for a while? Any thread, no GIL. */
bool pm__python_is_live(void);
bool pm__python_is_paused(void);

/* Drops the code registry (and its references: takes the GIL), counters and shadow contents. */
void pm__python_reset(void);

/* In a forked child, before anything else runs: callbacks do nothing from here on. AS-safe. */
void pm__python_forked(void);

/* Facts for diagnostics; strings live as long as the library. */
struct pm_python_facts {
  enum pm_python_state state;
  const char *reason;  /* "" when attributed */
  const char *version; /* "3.12.1", "" when absent */
  bool free_threaded;
  int tool_id;         /* -1: none */
  uint64_t callback_failures, codes;
  uint64_t codes_met;     /* by threads that had not met them in this session or burst */
  uint64_t events_missed; /* entering events among them, of threads with a shadow */
  uint64_t unknown_ids; /* calls of codes without an id */
  uint64_t codes_unregistered; /* refused beyond PM_CODES_MAX or after a failure */
  /* Calibrated bytes from a callback's CFA to the interpreter frame's; 0: marks go by order. */
  int32_t distance[PM_EVENT_KINDS];
};
struct pm_python_facts pm__python_facts(void);

enum pm_code_category {
  PM_CATEGORY_APPLICATION,
  PM_CATEGORY_STDLIB,
  PM_CATEGORY_EXTERNAL,
  PM_CATEGORY_UNKNOWN,
  PM_CATEGORY_OWN, /* Pyrometer's own package: never shown */
  PM_CATEGORY_KINDS
};

/* A registered code object. Strings are UTF-8; they live until pm__python_reset. */
struct pm_code {
  const char *file;
  const char *module;
  const char *name;
  const char *qualname;
  uint32_t line;
  enum pm_code_category category;
};

/* NULL for 0 and for ids never given. Any thread, no GIL. */
const struct pm_code *pm__code_info(uint32_t id);
/* Ids given so far are 1 .. pm__code_count(). */
uint32_t pm__code_count(void);
/* Calls (PY_START events) of a code, summed over all threads, dead ones too. */
uint64_t pm__code_calls(uint32_t id);

/*
 * What calibration learned about native functions (start addresses), for the merge:
 * those that run Python frames, and those between them and our callbacks.
 */
enum pm_native_role { PM_ROLE_OTHER, PM_ROLE_INTERPRETER, PM_ROLE_DISPATCH };
enum pm_native_role pm__python_role(uintptr_t function_start);

/*
 * Reads the names of all Python threads (takes the GIL) and hands them to
 * hooks->name_thread. Also does what pm__python_check does.
 */
void pm__python_refresh_names(void);

/*
 * Looks whether our place in sys.monitoring is still ours (takes the GIL). If not,
 * the state becomes PM_PYTHON_NATIVE_ONLY, with the reason, and all shadow stacks
 * are empty from then on: without events nothing says that they are true.
 */
void pm__python_check(void);

/*
 * Has the main thread do pm__python_check when it next can, at most every 50 ms:
 * for callers that may not wait for the GIL. `now`: CLOCK_MONOTONIC, ns.
 */
void pm__python_watch(uint64_t now);

/*
 * Has the main thread take all rows of hooks->next_row when it next can. False when there
 * is no interpreter that could. Any thread, no GIL. PM_ATTENTION_CALLS on the main thread's
 * shadow stack makes it sooner.
 */
bool pm__python_log_ask(void);

/*
 * Did this or an earlier call in the session find a subinterpreter? Each has its own
 * sys.monitoring, and its Python frames are not followed: their CPU is in the native
 * stacks. Any thread, no GIL.
 */
bool pm__python_had_subinterpreters(void);

/*
 * Lets go of the GIL if the caller holds it, and says so to pm__python_take_gil,
 * which must follow on the same thread. For waits on a lock whose holder may
 * itself wait for the GIL.
 */
void *pm__python_release_gil(void);
void pm__python_take_gil(void *released);

#endif /* PM_PYTHON_PYTHON_H */
