/* SPDX-License-Identifier: Apache-2.0 */
/* See fork.h. */
#include "session/fork.h"

#include <pthread.h>
#include <signal.h>

#include "base/base.h"
#include "sampler/sampler.h"

static const struct pm_fork_hooks *watcher;

/*
 * Owner:    the thread that forks, and the child's only thread, which has a copy.
 * Readers:  nobody else. A signal handler may fork between the two halves of a fork: only
 *           the outer one changes the mask.
 */
static __thread struct {
  uint8_t depth;
  uint8_t blocked; /* the signal to be let through again, 0: none */
} forking PM_TLS_MODEL;

static void block(int signal) {
  sigset_t ours, before;
  sigemptyset(&ours);
  sigaddset(&ours, signal);
  if (pthread_sigmask(SIG_BLOCK, &ours, &before) != 0) return;
  if (sigismember(&before, signal) == 0) forking.blocked = (uint8_t)signal;
}

static void unblock(void) {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, forking.blocked);
  forking.blocked = 0;
  pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
}

static void before_fork(void) {
  int signal = pm__sampler_signal();
  if (forking.depth++ == 0 && signal != 0) block(signal);
  watcher->before();
}

static void go_on(void) {
  if (--forking.depth == 0 && forking.blocked != 0) unblock();
}

static void after_fork_in_parent(void) {
  watcher->in_parent();
  go_on();
}

static void after_fork_in_child(void) {
  watcher->in_child();
  go_on();
}

void pm__fork_watch(const struct pm_fork_hooks *hooks) {
  watcher = hooks;
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
