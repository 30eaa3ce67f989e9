/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle build (-Doracle=true) only, for the tests: at a random one in N
 * events the callback compares the stack that a sample would show with a walk of
 * the thread's own frames. N is PYROMETER_ORACLE in the environment; without it
 * nothing is compared. PYROMETER_ORACLE_PLANT makes errors. Every other build holds
 * none of this.
 *
 * What equal means. "True" are the codes of the thread's frames as Python's API
 * gives them. "Shown" is what pm__shadow_copy hands to a sample: root end, number
 * of frames left out in the middle, leaf end; equal when the depth is that of the
 * true stack and each visible frame has the id of the true code at its depth
 * (0 for a code the registry does not know).
 * - START, RESUME, THROW: shown after the event = true.
 * - RETURN, YIELD, UNWIND: shown before the event = true (the frame still stands);
 *   where not, the event has to heal: shown after it = true without the innermost.
 * - Events whose code no frame runs (Cython's) have it shown as the innermost; such
 *   codes are left out of both stacks, for a walk never shows them.
 * `healed` counts, by kind, the events that found another stack than the true one
 * and left the true one behind. At THROW and START frames have just appeared without
 * an event; at the other kinds samples had shown another stack since an earlier event.
 */
#ifndef PM_PYTHON_ORACLE_H
#define PM_PYTHON_ORACLE_H

#include "python/api.h"
#include "signal/shadow.h"

enum { PM_ORACLE_EXAMPLES = 6, PM_ORACLE_TEXT = 4096 };

struct pm_oracle_facts {
  uint64_t events, compared, different, frameless;
  uint64_t healed[PM_EVENT_KINDS];
  const char *examples[PM_ORACLE_EXAMPLES]; /* the first differences, then NULL; live for ever */
};

#ifdef PYROMETER_ORACLE
/*
 * Around whatever a callback does with its event; `caller` is its CFA. They never raise and
 * keep a pending exception.
 */
void pm__oracle_before(enum pm_event kind, PyObject *code);
void pm__oracle_after(enum pm_event kind, PyObject *const *args, uintptr_t caller);
/* Counts since the library was loaded. Any thread. */
bool pm__oracle_facts(struct pm_oracle_facts *facts);
#else
static inline void pm__oracle_before(enum pm_event kind, PyObject *code) { (void)kind, (void)code; }
static inline void pm__oracle_after(enum pm_event kind, PyObject *const *args, uintptr_t caller) {
  (void)kind, (void)args, (void)caller;
}
static inline bool pm__oracle_facts(struct pm_oracle_facts *facts) {
  (void)facts;
  return false;
}
#endif

#endif /* PM_PYTHON_ORACLE_H */
