/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session: the public interface, and the one thread that collects.
 * Called by: the host through pyrometer.h. Includes every folder. Locks: the
 * interface lock (session.c) around start, stop and export; the profile lock
 * (collector.c) around the growing profile. Order: interface, then profile; the
 * GIL is never waited for with the profile lock held.
 *
 * collector.h: the thread that drains the rings, watches threads and modules,
 * and rolls windows. It never takes the GIL and has all signals blocked.
 */
#ifndef PM_SESSION_COLLECTOR_H
#define PM_SESSION_COLLECTOR_H

#include "base/base.h"
#include "profile/profile.h"
#include "python/arrival.h"

struct pm_collector_begin {
  uint32_t delay_ms;     /* before anything is done */
  void (*prepare)(void); /* the first thing done, or NULL; the interface lock may be held */
  pm_arrival let_in;     /* who is to be let into Python when it can be had, or NULL */
};

/*
 * Starts the thread; after the delay it builds the missing unwind tables, then arms the
 * timers. 0 or PYROMETER_E_*.
 */
int pm__collector_start(struct pm_profile *profile, const struct pm_collector_begin *begin);
/* Timers are off already: drains what is left, settles the accounts and ends the thread. */
void pm__collector_stop(void);
/* After the stop: takes over the names that threads have got since. */
void pm__collector_rename(void);
/* Brings the profile up to now and keeps the collector out of it until unlock. */
void pm__collector_lock(void);
void pm__collector_unlock(void);
/* CPU that our own threads have used in the session, ns; locked. */
uint64_t pm__collector_cpu(void);
/* Counters over all threads, ended ones too; locked or stopped. */
struct pm_profile_counts pm__collector_counts(void);
/* What is known of events since the session began; locked or stopped. */
struct pm_profile_events pm__collector_events(void);
/* Does sampling run already (the first tables are built)? Waits up to `timeout_ms`. */
bool pm__collector_wait_armed(uint32_t timeout_ms);
/* In a forked child: the thread is not there. */
void pm__collector_forked(void);

#endif /* PM_SESSION_COLLECTOR_H */
