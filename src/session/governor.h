/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the cost under a budget. Where events cost more than it allows they are on in bursts
 * only, as long and as often as it pays for; sampling goes on all the time, and samples in
 * between get the Python frames of others (profile/donors.h). The governor is a
 * thread of its own, for it waits for the GIL, which the collector may not.
 */
#ifndef PM_SESSION_GOVERNOR_H
#define PM_SESSION_GOVERNOR_H

#include "base/base.h"

struct pm_governor_facts {
  bool active;        /* events have been off in this session */
  uint64_t on_ns;     /* process CPU while they were on, all of it while they never were off */
  uint64_t own_ns;    /* CPU of the governor's thread */
  uint64_t switch_ns; /* what switching is reckoned to have cost the program's threads */
  uint32_t bursts;    /* times they came on again */
};

/* A session begins: its facts start here, before anybody reads them. */
void pm__governor_reset(void);
/*
 * `budget`: hundredths of a percent of the process's CPU; 0: none, and no thread. `rate_hz`:
 * the session's; in bursts the fastest is used.
 */
void pm__governor_begin(uint32_t budget, uint32_t rate_hz);
/* Ends its thread; may let go of the GIL while it waits. What the facts say stays. */
void pm__governor_end(void);
/* In a forked child: the thread is not there. */
void pm__governor_forked(void);
/* Any thread; `cpu_ns`: the process's CPU clock now. */
struct pm_governor_facts pm__governor_facts(uint64_t cpu_ns);

#endif /* PM_SESSION_GOVERNOR_H */
