/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's shadow stack, made true by walking the thread's own frames. */
#ifndef PM_PYTHON_SEED_H
#define PM_PYTHON_SEED_H

#include "python/api.h"
#include "python/local.h"

/* Why a thread walks its frames. */
struct pm_seed_event {
  const void *code; /* the event's code object, or NULL: no event, only a walk */
  uint64_t mark;    /* CFA of the native frame that runs it, 0: not known */
  bool entering;    /* START, RESUME, THROW: the frame is not in the shadow yet */
  bool thrown;      /* THROW: its awaiters stand on the stack again, and got no event */
};

enum pm_seed_result {
  PM_SEED_NO_FRAMES, /* Python gave none: the stack is left as it was */
  PM_SEED_OTHER_TOP, /* done; the innermost frame does not run the event's code */
  PM_SEED_DONE,      /* done; the innermost frame is the event's */
};

/*
 * Rewrites the caller's shadow from its frames. Frames that the shadow had
 * already, at the same depth from the root up, keep their marks; the others have
 * none but the event's own. `fresh`: nothing in the shadow counts. A rewrite
 * that changed anything is counted as a resync unless fresh.
 */
enum pm_seed_result pm__seed_self(struct pm_python_thread *thread, struct pm_seed_event event,
                                  bool fresh);

/* No frame is known: the shadow is empty, and true for this session. */
void pm__seed_empty(struct pm_python_thread *thread);

/*
 * At a leave event of a deep frame when the ring of deep frames has run empty:
 * brings back those just below the leaving one.
 */
void pm__seed_refill(struct pm_python_thread *thread, const void *leaving);

/* The code of the caller's second innermost frame, to be compared only; NULL without one. */
const void *pm__seed_parent(void);

/* Fills another thread's shadow from its innermost frame. That thread must not run Python meanwhile; `reader` is the caller's. */
void pm__seed_other(struct pm_python_thread *reader, struct pm_shadow *shadow, PyObject *frame);

/* The id of a code for this thread: from its cache, else registered and cached. */
struct pm_code_entry *pm__seed_entry(struct pm_python_thread *thread, PyObject *code,
                                     PyObject *frame);

#endif /* PM_PYTHON_SEED_H */
