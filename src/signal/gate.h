/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks the handler for the run gate (tests/gates/run_gate.c), in the gate build
 * only: the preloaded gate aborts when a forbidden function is called in between.
 */
#ifndef PM_SIGNAL_GATE_H
#define PM_SIGNAL_GATE_H

#ifdef PYROMETER_GATE
#include <stdlib.h>

/*
 * Without the preloaded gate they are NULL. noplt: the address is bound when the
 * library is loaded, not by the loader at the first call.
 */
extern int pyrometer_gate_enter(void) __attribute__((weak, noplt, visibility("default")));
extern void pyrometer_gate_leave(void) __attribute__((weak, noplt, visibility("default")));

static inline void pm__gate_enter(void) {
  if (pyrometer_gate_enter == NULL || pyrometer_gate_enter() == 0) return;
  void *volatile planted = malloc(1); /* PYROMETER_GATE_PLANT: the gate has to stop this */
  free(planted);
}

static inline void pm__gate_leave(void) {
  if (pyrometer_gate_leave != NULL) pyrometer_gate_leave();
}
#else
static inline void pm__gate_enter(void) {}
static inline void pm__gate_leave(void) {}
#endif

#endif /* PM_SIGNAL_GATE_H */
