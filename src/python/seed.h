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

struct pm_seed_step {
  const void *code; /* alive while its frame stands, which the walk has seen */
  uint32_t id;
  bool suspends;
};

/* A walk goes from the leaf outward and does not know its length: it keeps both ends. */
struct pm_seed_walk {
  struct pm_seed_step leaf[PM_SHADOW_TAIL]; /* the innermost, in walk order */
  struct pm_seed_step root[PM_SHADOW_ROOT]; /* the outermost: step k at k % ROOT */
  uint32_t total;
  PyObject *outermost; /* new reference to the last frame, NULL when cut by the limit */
};

/* Appends a frame, the next one outward. */
void pm__seed_note(struct pm_seed_walk *walk, const struct pm_code_entry *entry);

/* All frames from `frame` outward; codes are registered by `reader`, the caller's. */
void pm__seed_walk_from(struct pm_seed_walk *walk, struct pm_python_thread *reader,
                        PyObject *frame);

/* Fills another thread's shadow. That thread must not run Python meanwhile. AS-safe. */
void pm__seed_other(struct pm_shadow *shadow, const struct pm_seed_walk *walk);

/*
 * The id of a code for this thread: from its cache, else registered and cached. `frame`
 * or `globals` tell the module; NULL: not known.
 */
struct pm_code_entry *pm__seed_entry(struct pm_python_thread *thread, PyObject *code,
                                     PyObject *frame);
struct pm_code_entry *pm__seed_entry_in(struct pm_python_thread *thread, PyObject *code,
                                        PyObject *globals);

#endif /* PM_PYTHON_SEED_H */
