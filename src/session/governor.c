/* SPDX-License-Identifier: Apache-2.0 */
/* See governor.h. All times in ns; those of a cycle are CPU of the process. */
#include "session/governor.h"

#include <pthread.h>
#include <time.h>

#include "base/thread.h"
#include "profile/donors.h"
#include "python/python.h"
#include "sampler/sampler.h"
#include "session/collector.h"

enum {
  FIRST_MS = 100,     /* how long events are on before the first decision */
  LOOK_MS = 200,      /* how long between others, while they stay on */
  OFF_MS_MAX = 1000,  /* by the clock, so that a service that does little is looked at too */
  AWAIT_MS = 50,      /* for Python to let us in */
  NAP_MS_MAX = 100,
  END_WAIT_MS = 1000, /* for a thread that waits for a GIL it may never get */
};

static const double ms = 1e6;
static const double burst_least = 12e6; /* by the clock: three samples of each busy thread */
static const double cycle_least = 100e6, cycle_most = 5e9;
static const double cycle_least_free_threaded = 1e9; /* there a switch stops all threads */
static const double switch_share = 0.4; /* of what the budget leaves, for switching */
static const double margin = 0.8;       /* of the budget is aimed at */
static const double room_least = 0.33;  /* of it is left for events, whatever else has cost */
static const double code_ns = 3000.0;   /* to instrument one code object, or to undo it */
static const double price_factor = 1.2; /* the dearest program's events to the usual price */

/*
 * Owner:    the governor's thread, under the lock; begin and end.
 * Readers:  the collector and whoever makes diagnostics, by the facts.
 * Ordering: the lock. No other lock is taken, nor the GIL, while it is held.
 */
static struct {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  uint32_t generation; /* a thread of another one ends */
  uint32_t thread; /* the generation of the thread that runs, 0: none does */
  bool off;
  double budget; /* a fraction */
  uint32_t rate_hz;
  struct pm_governor_facts facts;
  uint64_t on_since; /* process CPU when events came on last */
} governor = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* What has been used so far; differences of two are what the interval between took. */
struct reading {
  uint64_t cpu, wall, events, fixed, codes;
};

/* What the governor goes by. */
struct plan {
  uint32_t generation;
  uint32_t rate_hz;   /* the session's */
  double event_cost;  /* of events while they are on, per CPU of the program without them */
  double fixed_cost;  /* of sampling and collecting, per CPU of the process */
  double switch_cost; /* a cycle's, ns */
  double cores;       /* busy in the last burst */
  double cycle_least;
  double on, cycle;   /* ns; on == cycle: events stay on */
  struct reading begin;
  double switched; /* what all switching has cost so far, ns */
  bool owes;       /* more than the budget has been used since the beginning */
};

static bool goes_on(uint32_t generation) {
  pthread_mutex_lock(&governor.lock);
  bool same = governor.generation == generation;
  pthread_mutex_unlock(&governor.lock);
  return same;
}

/* False: the session ends. */
static bool nap(uint32_t generation, double ns) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  uint64_t end = (uint64_t)until.tv_sec * 1000000000u + (uint64_t)until.tv_nsec + (uint64_t)ns;
  until = (struct timespec){.tv_sec = (time_t)(end / 1000000000u),
                            .tv_nsec = (long)(end % 1000000000u)};
  pthread_mutex_lock(&governor.lock);
  if (governor.generation == generation) {
    pthread_cond_timedwait(&governor.wake, &governor.lock, &until);
  }
  bool same = governor.generation == generation;
  pthread_mutex_unlock(&governor.lock);
  return same;
}

/* Waits until the process has used so much CPU, or the clock has gone on by `most` ms. */
static bool wait_cpu(uint32_t generation, double ns, uint32_t most) {
  uint64_t begin = pm__clock_process(), end = pm__clock_monotonic() + most * UINT64_C(1000000);
  double pace = 1.0; /* CPU by wall clock, as last seen */
  for (;;) {
    uint64_t now = pm__clock_process(), wall = pm__clock_monotonic();
    double left = ns - (double)(now - begin);
    if (left <= 0 || wall >= end) return true;
    double pause = left / (pace < 0.05 ? 0.05 : pace);
    if (pause > NAP_MS_MAX * ms) pause = NAP_MS_MAX * ms;
    if (pause < ms) pause = ms;
    if (!nap(generation, pause)) return false;
    pace = (double)(pm__clock_process() - now) / (double)(pm__clock_monotonic() - wall);
  }
}

static struct reading read_costs(void) {
  struct reading reading;
  pm__collector_lock();
  struct pm_profile_counts counts = pm__collector_counts();
  reading.fixed = counts.handler_ns + pm__collector_cpu();
  pm__collector_unlock();
  reading.cpu = pm__clock_process();
  reading.wall = pm__clock_monotonic();
  reading.events = pm__profile_count_events(&counts);
  reading.codes = pm__python_codes_met();
  return reading;
}

/* A mean in which the past fades. */
static void learn(double *mean, double value) { *mean += (value - *mean) * 0.5; }

static double events_took(struct reading before, struct reading after) {
  return (double)(after.events - before.events) * pm__python_event_ns() * price_factor;
}

static void learn_events(struct plan *plan, struct reading before, struct reading after,
                         bool first) {
  double took = events_took(before, after);
  double cpu = (double)(after.cpu - before.cpu);
  double rest = cpu - took > cpu * 0.1 ? cpu - took : cpu * 0.1;
  if (cpu <= 0) return;
  if (first) plan->event_cost = took / rest;
  learn(&plan->event_cost, took / rest);
}

/* The first look is taken before anything is known; a short session must make up for it. */
static void settle(struct plan *plan, struct reading now) {
  double fixed = (double)(now.fixed - plan->begin.fixed);
  double used = events_took(plan->begin, now) + fixed + plan->switched;
  plan->owes = used > governor.budget * (double)(now.cpu - plan->begin.cpu);
}

static void decide(struct plan *plan) {
  double least = governor.budget * room_least;
  double room = governor.budget * margin - plan->fixed_cost;
  if (room < least || plan->owes) room = least;
  plan->on = plan->cycle = LOOK_MS * ms;
  if (plan->event_cost <= room) return;
  double cycle = plan->switch_cost / (switch_share * room);
  if (cycle < plan->cycle_least) cycle = plan->cycle_least;
  if (cycle > cycle_most) cycle = cycle_most;
  double left = room - plan->switch_cost / cycle;
  if (left < room * 0.2) left = room * 0.2;
  double duty = left / plan->event_cost;
  if (duty >= 1.0) return;
  double burst = burst_least * (plan->cores > 1.0 ? plan->cores : 1.0);
  if (duty * cycle < burst) cycle = burst / duty;
  plan->cycle = cycle;
  plan->on = duty * cycle;
}

static void note_switch(bool on) {
  uint64_t cpu = pm__clock_process();
  pthread_mutex_lock(&governor.lock);
  if (on) {
    governor.on_since = cpu;
    governor.facts.bursts++;
  } else {
    governor.facts.on_ns += cpu - governor.on_since;
    governor.facts.active = true;
  }
  governor.off = !on;
  pthread_mutex_unlock(&governor.lock);
}

static bool switch_to(bool on) {
  if (!pm__python_switch(on)) return false;
  note_switch(on);
  return true;
}

static void add_costs(double switched) {
  pthread_mutex_lock(&governor.lock);
  governor.facts.own_ns = pm__clock_thread_self();
  governor.facts.switch_ns += (uint64_t)switched;
  pthread_mutex_unlock(&governor.lock);
}

/* What is seen while events are on stands for all the rest too: it is looked at closely. */
static bool begin_burst(const struct plan *plan, double instrument) {
  if (!switch_to(true)) return false;
  pm__collector_lock();
  pm__donors_next_burst(pm__clock_monotonic() + (uint64_t)instrument);
  pm__collector_unlock();
  if (plan->rate_hz < PM_RATE_MAX) pm__sampler_pace(PM_RATE_MAX);
  return true;
}

static bool end_burst(const struct plan *plan) {
  if (plan->rate_hz < PM_RATE_MAX) pm__sampler_pace(plan->rate_hz);
  return switch_to(false);
}

/* Off for the rest of a cycle, at random lengths so as not to keep step with the program. */
static bool rest(struct plan *plan, uint64_t codes) {
  uint64_t begin = pm__clock_thread_self();
  if (!end_burst(plan)) return false;
  double pause = plan->cycle - plan->on;
  pause *= 0.5 + (double)(pm__clock_monotonic() / 1000 % 1024) / 1024.0;
  if (!wait_cpu(plan->generation, pause, OFF_MS_MAX)) return false;
  double instrument = (double)codes * code_ns;
  if (!begin_burst(plan, instrument)) return false;
  double switched = 2.0 * instrument;
  double cost = switched + (double)(pm__clock_thread_self() - begin);
  plan->switched += cost;
  if (plan->switch_cost == 0) plan->switch_cost = cost;
  learn(&plan->switch_cost, cost);
  add_costs(switched);
  return true;
}

/* What is paid once, as the reading of symbols, is soon forgotten. */
static void learn_fixed(struct plan *plan, struct reading before, struct reading now) {
  double cpu = (double)(now.cpu - before.cpu);
  if (cpu > 0) learn(&plan->fixed_cost, (double)(now.fixed - before.fixed) / cpu);
}

static void govern(struct plan *plan) {
  struct reading last = plan->begin = read_costs();
  plan->cycle_least = pm__python_facts().free_threaded ? cycle_least_free_threaded : cycle_least;
  plan->on = plan->cycle = FIRST_MS * ms;
  for (bool first = true;; first = false) {
    struct reading before = read_costs();
    if (!wait_cpu(plan->generation, plan->on, UINT32_MAX)) return;
    struct reading after = read_costs();
    learn_events(plan, before, after, first);
    learn_fixed(plan, last, after);
    last = after;
    plan->cores = (double)(after.cpu - before.cpu) / (double)(after.wall - before.wall + 1);
    if (first) plan->switch_cost = (double)(after.codes - before.codes) * 2 * code_ns;
    settle(plan, after);
    decide(plan);
    if (plan->on < plan->cycle && !rest(plan, after.codes - before.codes)) return;
    if (!goes_on(plan->generation)) return;
  }
}

static void *governor_main(void *argument) {
  pthread_mutex_lock(&governor.lock);
  struct plan plan = {.generation = (uint32_t)(uintptr_t)argument, .rate_hz = governor.rate_hz};
  pthread_mutex_unlock(&governor.lock);
  pthread_setname_np(pthread_self(), "pyrometer-gov");
  pm__sampler_exclude(PM_OWN_GOVERNOR, pm__thread_id());
  bool same = true;
  while (same && !pm__python_is_live()) same = nap(plan.generation, AWAIT_MS * ms);
  if (same) govern(&plan);
  pthread_mutex_lock(&governor.lock);
  if (governor.thread == plan.generation) governor.thread = 0;
  pthread_cond_broadcast(&governor.wake);
  pthread_mutex_unlock(&governor.lock);
  return NULL;
}

void pm__governor_reset(void) {
  pthread_mutex_lock(&governor.lock);
  governor.facts = (struct pm_governor_facts){0};
  governor.on_since = pm__clock_process();
  governor.off = false;
  pthread_mutex_unlock(&governor.lock);
}

void pm__governor_begin(uint32_t budget, uint32_t rate_hz) {
  pthread_t thread;
  pthread_mutex_lock(&governor.lock);
  governor.budget = budget / 10000.0;
  governor.rate_hz = rate_hz;
  if (++governor.generation == 0) governor.generation = 1; /* 0 means none */
  void *generation = (void *)(uintptr_t)governor.generation;
  bool running = budget > 0 && pm__thread_start(&thread, governor_main, generation) == 0;
  governor.thread = running ? governor.generation : 0;
  if (running) pthread_detach(thread);
  pthread_mutex_unlock(&governor.lock);
}

/* A thread that CPython does not give its GIL any more, as when it ends, is left waiting. */
static void wait_for_thread(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += END_WAIT_MS / 1000;
  pthread_mutex_lock(&governor.lock);
  governor.generation++;
  pthread_cond_broadcast(&governor.wake);
  int expired = 0;
  while (governor.thread != 0 && expired == 0) {
    expired = pthread_cond_timedwait(&governor.wake, &governor.lock, &until);
  }
  pthread_mutex_unlock(&governor.lock);
}

void pm__governor_end(void) {
  pthread_mutex_lock(&governor.lock);
  bool running = governor.thread != 0;
  pthread_mutex_unlock(&governor.lock);
  if (!running) return;
  void *gil = pm__python_release_gil();
  wait_for_thread();
  pm__python_take_gil(gil);
}

void pm__governor_forked(void) {
  pthread_mutex_init(&governor.lock, NULL);
  pthread_cond_init(&governor.wake, NULL);
  governor.generation++;
  governor.thread = 0;
  governor.off = false;
}

struct pm_governor_facts pm__governor_facts(uint64_t cpu_ns) {
  pthread_mutex_lock(&governor.lock);
  struct pm_governor_facts facts = governor.facts;
  if (!governor.off && cpu_ns > governor.on_since) facts.on_ns += cpu_ns - governor.on_since;
  pthread_mutex_unlock(&governor.lock);
  return facts;
}
