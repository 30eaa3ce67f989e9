/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one signal of Pyrometer. SIGPROF unless the program handles it already,
 * else the highest free real-time signal. Installed once and never taken back:
 * a signal under way when sampling stops must find a handler, not the default
 * action, which would end the process.
 */
#include <pyrometer.h>
#include <signal.h>
#include <string.h>

#include "sampler/internal.h"
#include "signal/handler.h"

static int installed_signal;

static bool is_free(int signal, struct sigaction *current) {
  if (sigaction(signal, NULL, current) != 0 || (current->sa_flags & SA_SIGINFO)) return false;
  return current->sa_handler == SIG_DFL || current->sa_handler == SIG_IGN;
}

static int choose_signal(void) {
  struct sigaction current;
  if (is_free(SIGPROF, &current)) return SIGPROF;
  for (int signal = SIGRTMAX; signal >= SIGRTMIN; signal--) {
    if (is_free(signal, &current)) return signal;
  }
  return 0;
}

static bool is_installed(void) {
  struct sigaction current;
  return installed_signal != 0 && sigaction(installed_signal, NULL, &current) == 0 &&
         (current.sa_flags & SA_SIGINFO) && current.sa_sigaction == pm__handler;
}

int pm__install_handler(void) {
  if (is_installed()) return PYROMETER_OK;
  int signal = choose_signal();
  if (signal == 0) return PYROMETER_E_SIGNAL;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = pm__handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  if (sigaction(signal, &action, &pm__signal_state.previous) != 0) return PYROMETER_E_SIGNAL;
  installed_signal = signal;
  return PYROMETER_OK;
}

int pm__install_signal(void) { return installed_signal; }
