/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of threads: found by scanning /proc/self/task (scan.c) or by their own
 * first event. Everything here is under pm__registry_lock.
 */
#ifndef PM_SAMPLER_REGISTRY_H
#define PM_SAMPLER_REGISTRY_H

#include <pthread.h>

#include "sampler/sampler.h"

struct pm_registry {
  bool started, armed;
  bool at_start; /* threads found now were there before the session */
  uint64_t period_ns;
  uint32_t shadows_left;
  int32_t excluded[PM_OWN_THREADS];
  struct pm_sampler_facts facts;
  uint64_t lost_before[PM_LOST_KINDS]; /* signals that found no thread, before the session */
};
extern pthread_mutex_t pm__registry_lock;
extern struct pm_registry pm__registry;

static inline struct pm_sampled *pm__sampled_of(struct pm_thread *thread) {
  return (struct pm_sampled *)(void *)thread;
}

/* Takes a block for `tid`; NULL: there is none left, or no such thread. */
struct pm_sampled *pm__registry_add(int32_t tid);
/* The thread is about to end, or has ended. */
void pm__registry_end(struct pm_sampled *sampled);

#endif /* PM_SAMPLER_REGISTRY_H */
