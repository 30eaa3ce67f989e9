/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share about the running session. */
#ifndef PM_PYTHON_STATE_H
#define PM_PYTHON_STATE_H

#include <pthread.h>

#include "python/api.h"
#include "python/python.h"
#include "python/untold.h"

enum pm_python_phase {
  PM_PHASE_OFF,         /* callbacks return at once */
  PM_PHASE_CALIBRATING, /* those on the calibrating thread are recorded */
  PM_PHASE_LIVE,
};

/*
 * Owner:    pm__python_start and _stop, which the session serialises.
 * Readers:  callbacks on all threads.
 * Ordering: everything else is written before `live` gets its number, with
 *           release; a thread's first event of a session loads it with acquire.
 */
struct pm_python_session {
  /* All that the hot path reads, on a line that hardly ever changes. */
  _Alignas(PM_CACHE_LINE) _Atomic uint32_t live; /* its number; 0: none, or a forked child */
  PyObject *none; /* the interpreter's None, which is immortal */
  _Atomic uint32_t phase; /* pm_python_phase */
  _Atomic uint32_t forked;
  _Atomic uint32_t paused; /* attached, with the events off for a while (pause.c) */
  _Atomic uint32_t attaching; /* a thread is taking our place in sys.monitoring right now */
  _Atomic uint32_t child_waits; /* forked, and no event has come since */
  bool free_threaded;
  struct pm_python_hooks hooks;
  uintptr_t distance[PM_EVENT_KINDS]; /* callback's CFA to the interpreter frame's; 0: not known */
  struct pm_untold untold;
  _Alignas(PM_CACHE_LINE) _Atomic uint64_t callback_failures;
  _Atomic uint32_t cold; /* events in their cold path right now; counted before `live` is read */
};
extern struct pm_python_session pm__python_session;

/* From here on callbacks work, for a session of a new number. */
void pm__python_go_live(void);

/* From here on callbacks and the handler leave Python alone. Any thread; AS-safe. */
void pm__python_go_off(void);

/* Is there a session with Python, whether or not its events are on right now? */
static inline bool pm__python_is_attached(void) {
  return atomic_load(&pm__python_session.live) != 0 || atomic_load(&pm__python_session.paused) != 0;
}

static inline void pm__python_count_failure(void) {
  atomic_fetch_add_explicit(&pm__python_session.callback_failures, 1, memory_order_relaxed);
}

#endif /* PM_PYTHON_STATE_H */
