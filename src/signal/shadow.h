/* SPDX-License-Identifier: Apache-2.0 */
/* The shadow stack of a Python thread, fed by monitoring events, read by the handler. */
#ifndef PM_SIGNAL_SHADOW_H
#define PM_SIGNAL_SHADOW_H

#include "base/base.h"

/* One Python frame: which code, and the CFA of the interpreter's native frame that runs it. */
struct pm_shadow_frame {
  uint32_t code;  /* id in the code registry; 0 = unknown code */
  uint32_t flags; /* pm_shadow_frame_flag */
  uint64_t mark;  /* CFA, or 0 when not known (seeded, healed) */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "code and flags are stored as one word");

enum pm_shadow_frame_flag {
  PM_SHADOW_SEEDED = 1 << 0, /* came from a walk of the thread's own frames, not from an event */
  PM_SHADOW_LOOSE = 1 << 1,  /* seeded, and may be gone, or enter yet, without another event */
  PM_SHADOW_PASSED = 1 << 2, /* awaits, directly or not, the frame that a THROW went to */
};

/* What the collector may ask of a thread; taken back by the thread's next event. */
enum pm_shadow_attention {
  PM_ATTENTION_NAME = 1 << 0,  /* tell the thread's Python name again */
  PM_ATTENTION_MARKS = 1 << 1, /* all unwind tables are there: complete the marks */
  PM_ATTENTION_CALLS = 1 << 2, /* there are pending calls for the main thread (handover.h) */
};

enum {
  PM_SHADOW_ROOT = 192, /* frames [0, ROOT) stay; deeper ones go through a ring of TAIL slots */
  PM_SHADOW_TAIL = PM_PYTHON_FRAMES - PM_SHADOW_ROOT, /* a power of two */
};

/*
 * Owner:    the thread itself, in its monitoring callbacks.
 * Readers:  the signal handler on the same thread; the collector for counters.
 * Ordering: a push writes the slot, then `depth`; a pop writes `depth` only, so a
 *           handler on the same thread always sees a whole stack (compiler fences
 *           suffice). A rewrite of several slots makes `sequence` odd meanwhile,
 *           and a handler that meets an odd one drops the Python part.
 *
 * A frame at depth d lives in slot d below PM_SHADOW_ROOT, else in slot
 * PM_SHADOW_ROOT + d % PM_SHADOW_TAIL. Of the deep ones only [tail_low, depth)
 * are still there: frames [PM_SHADOW_ROOT, tail_low) have been overwritten.
 */
struct pm_shadow {
  _Atomic uint32_t depth;
  _Atomic uint32_t sequence;
  uint32_t tail_low;  /* >= PM_SHADOW_ROOT */
  uint32_t depth_max; /* deepest seen */
  uint32_t innermost_easy; /* below it the innermost slot can have one pushed on it without a look
                              at the limits: depth_max or PM_PYTHON_FRAMES, less one */
  _Atomic uint32_t attention; /* pm_shadow_attention: the next event takes its cold path */
  /* The session (pm__shadow_session) that filled the frames; in another one they mean nothing. */
  _Atomic uint32_t seeded;
  _Atomic uint64_t events[6]; /* by enum pm_event */
  _Atomic uint64_t overflows; /* pushes deeper than PM_PYTHON_FRAMES */
  _Atomic uint64_t resyncs;
  struct pm_shadow_frame frames[PM_PYTHON_FRAMES];
};

enum pm_event {
  PM_EVENT_START,
  PM_EVENT_RESUME,
  PM_EVENT_THROW,
  PM_EVENT_RETURN,
  PM_EVENT_YIELD,
  PM_EVENT_UNWIND,
  PM_EVENT_KINDS
};

/* Number of the running attribution session, 0 when there is none. Written by src/python. */
extern _Atomic uint32_t pm__shadow_session;

/*
 * Copies the visible frames, root first, into `out` (PM_PYTHON_FRAMES long).
 * `*split` and `*skipped` say where frames are missing: `skipped` frames between
 * out[split - 1] and out[split]. None when the thread has not been seen in this session. False when
 * the stack is being rewritten. Async-signal-safe on the owning thread.
 */
bool pm__shadow_copy(const struct pm_shadow *shadow, struct pm_shadow_frame *out, uint32_t *count,
                     uint32_t *split, uint32_t *skipped);

#endif /* PM_SIGNAL_SHADOW_H */
