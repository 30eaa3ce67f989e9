/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one signal of Pyrometer: the highest free real-time signal but one, for those are
 * what programs leave alone (a pool of workers resets SIGPROF, other profilers take it,
 * valgrind keeps the last one for itself). Installed once and never taken back: a
 * signal under way when sampling stops must find a handler, not the default action,
 * which would end the process.
 *
 * SIGPROF gets the handler too where nobody handles it: what profilers send late, or a
 * person by hand, ends no process that has us.
 */
#include <pyrometer.h>
#include <signal.h>
#include <string.h>

#include "sampler/internal.h"
#include "signal/handler.h"

static _Atomic int installed_signal; /* written under the registry's lock */

static bool is_free(int signal, struct sigaction *current) {
  if (sigaction(signal, NULL, current) != 0 || (current->sa_flags & SA_SIGINFO)) return false;
  return current->sa_handler == SIG_DFL || current->sa_handler == SIG_IGN;
}

/* Not the one that the program has just taken, whatever for. */
static int choose_signal(void) {
  struct sigaction current;
  for (int signal = SIGRTMAX - 1; signal >= SIGRTMIN; signal--) {
    if (signal != installed_signal && is_free(signal, &current)) return signal;
  }
  return is_free(SIGPROF, &current) ? SIGPROF : 0;
}

static bool install(int signal, struct sigaction *previous) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = pm__handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  return sigaction(signal, &action, previous) == 0;
}

/* Once: what the program does with it later is the program's. */
static void guard_sigprof(void) {
  static bool guarded;
  struct sigaction current;
  if (guarded || sigaction(SIGPROF, NULL, &current) != 0) return;
  bool unhandled = !(current.sa_flags & SA_SIGINFO) && current.sa_handler == SIG_DFL;
  guarded = !unhandled || install(SIGPROF, &current);
}

bool pm__install_is_in_place(void) {
  struct sigaction current;
  return installed_signal != 0 && sigaction(installed_signal, NULL, &current) == 0 &&
         (current.sa_flags & SA_SIGINFO) && current.sa_sigaction == pm__handler;
}

int pm__install_handler(void) {
  if (pm__install_is_in_place()) return PYROMETER_OK;
  int signal = choose_signal();
  if (signal == 0 || !install(signal, &pm__signal_state.previous)) return PYROMETER_E_SIGNAL;
  installed_signal = signal;
  guard_sigprof();
  return PYROMETER_OK;
}

int pm__sampler_signal(void) { return installed_signal; }
