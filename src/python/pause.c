/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events off for a while, and on again. While they are off no shadow stack is true, so
 * none is shown. Each time they come back is, for the callbacks, a session of its own: a
 * thread's first event walks its frames anew; codes and counts go on.
 */
#include "python/api.h"
#include "python/late.h"
#include "python/local.h"
#include "python/monitoring.h"
#include "python/place.h"
#include "python/state.h"
#include "python/visit.h"

static bool is_on(void) { return atomic_load(&pm__python_session.live) != 0; }
static bool is_paused(void) { return atomic_load(&pm__python_session.paused) != 0; }

/* The stacks first: what events come until all are off find no session. */
static bool pause_events(void) {
  if (!is_on()) return is_paused();
  atomic_store(&pm__python_session.paused, 1);
  atomic_store(&pm__shadow_session, 0);
  atomic_store(&pm__python_session.live, 0);
  return pm__monitoring_disable();
}

/* Without a GIL other threads run on, and seed themselves at their first event. */
static bool resume_events(void) {
  if (!is_paused()) return is_on();
  if (!pm__monitoring_enable()) return false;
  pm__python_go_live();
  if (!pm__python_session.free_threaded) pm__late_threads(false);
  return true;
}

static bool switch_events(bool on) {
  pm__place_check();
  return on ? resume_events() : pause_events();
}

bool pm__python_switch(bool on) {
  struct pm_visit visit;
  if (!pm__api_usable() || !(is_on() || is_paused())) return false;
  if (!pm__visit_begin(&visit)) return false;
  bool done = switch_events(on);
  pm__visit_end(&visit);
  return done;
}

uint64_t pm__python_codes_met(void) {
  uint64_t met, missed;
  pm__counters_lookups(&met, &missed);
  return met;
}

bool pm__python_is_live(void) { return is_on(); }
bool pm__python_is_paused(void) { return is_paused(); }
