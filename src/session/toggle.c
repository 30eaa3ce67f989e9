/* SPDX-License-Identifier: Apache-2.0 */
/* The handler may do next to nothing, so a thread waits for it. See toggle.h. */
#include "session/toggle.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>

#include "base/thread.h"

static sem_t asked;

static void note(int number) {
  int kept = errno;
  (void)number;
  sem_post(&asked);
  errno = kept;
}

static void *wait_for_signals(void *argument) {
  void (**toggle)(void) = argument;
  pthread_setname_np(pthread_self(), "pyrometer");
  for (;;) {
    if (sem_wait(&asked) == 0) (*toggle)();
  }
  return NULL;
}

static int make_thread(void (**toggle)(void)) {
  pthread_t thread;
  int error = pm__thread_start(&thread, wait_for_signals, toggle);
  if (error == 0) pthread_detach(thread);
  return error;
}

void pm__toggle_by(int number, void (*toggle)(void)) {
  static void (*kept)(void);
  struct sigaction action, before;
  if (sigaction(number, NULL, &before) != 0 || before.sa_handler == SIG_IGN) return;
  kept = toggle;
  sem_init(&asked, 0, 0);
  if (make_thread(&kept) != 0) return;
  memset(&action, 0, sizeof action);
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, NULL);
}
