/* SPDX-License-Identifier: Apache-2.0 */
/* See loader.h. */
#include "base/loader.h"

#include <pthread.h>
#include <stdbool.h>

/* Checked for errors: a signal handler may fork on the very thread that is inside. */
static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static bool fork_holds; /* under the lock */

int pm__loader_each(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                    void *context) {
  pthread_mutex_lock(&lock);
  int answer = dl_iterate_phdr(visit, context);
  pthread_mutex_unlock(&lock);
  return answer;
}

void pm__loader_before_fork(void) {
  if (pthread_mutex_lock(&lock) == 0) fork_holds = true;
}

void pm__loader_after_fork(void) {
  if (!fork_holds) return;
  fork_holds = false;
  pthread_mutex_unlock(&lock);
}

void pm__loader_forked(void) {
  fork_holds = false;
  lock = (pthread_mutex_t)PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
}
