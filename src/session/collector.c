/* SPDX-License-Identifier: Apache-2.0 */
/* The collector thread; see collector.h. */
#include "session/collector.h"

#include <pthread.h>
#include <pyrometer.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "python/python.h"
#include "report/report.h"
#include "sampler/sampler.h"
#include "session/books.h"
#include "session/governor.h"
#include "session/reporter.h"
#include "unwind/unwind.h"

enum {
  DRAIN_MS = 50,       /* a ring holds at least 15 of the largest records: 60 ms at 250 Hz */
  SCAN_MS = 50,        /* how often threads are looked for, at most */
  SCAN_COST_SHARE = 200, /* a scan of t ns is not repeated before 200 t: half a percent */
  ARRIVAL_MS = 150,    /* how long sampling waits for Python, so as not to begin without it */
  NAP_MS = 2,
};

static struct {
  struct pm_profile *profile;
  struct pm_collector_begin begin;
  pthread_t thread;
  pthread_mutex_t lock; /* the profile lock */
  pthread_cond_t wake;
  bool running, stopping, armed;
  uint32_t generation; /* a thread of another one ends: it is a copy in a forked child */
  uint64_t next_scan;
  int signal_told; /* the last one lost, 0: none */
  uint64_t cpu_base; /* CPU of the collector before sampling began */
} collector = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t slack_of_live(void) { return 2000000000u / collector.profile->rate_hz; }

static void roll(uint64_t now) {
  struct pm_profile *profile = collector.profile;
  if (now - profile->start_ns >= profile->window_ns * profile->window_count) {
    pm__books_settle(PM_BOOK_SESSION, slack_of_live());
  }
  pm__profile_roll(profile, now);
  profile->end_ns = now;
  profile->end_ms = profile->start_ms + (now - profile->start_ns) / 1000000u;
}

static void scan(uint64_t now) {
  if (now < collector.next_scan) return;
  uint64_t cost = pm__clock_thread_self();
  pm__sampler_scan();
  cost = pm__clock_thread_self() - cost;
  uint64_t pause = cost * SCAN_COST_SHARE;
  if (pause < SCAN_MS * 1000000u) pause = SCAN_MS * 1000000u;
  collector.next_scan = now + pause;
}

/* Said once a session. With no lock held: standard error may be slow. */
static void tell_of_signal(void) {
  struct pm_sampler_facts facts = pm__sampler_facts();
  if (facts.signal_lost == collector.signal_told) return;
  bool first = collector.signal_told == 0;
  collector.signal_told = facts.signal_lost;
  if (!first) return;
  pm__report_tell("the program handles signal %d itself now; sampling %s", facts.signal_lost,
                  facts.signal == 0 ? "has ended" : "goes on by another one");
}

/* One round, under the profile lock. */
static void collect(void) {
  uint64_t now = pm__clock_monotonic();
  pm__sampler_check_signal();
  pm__unwind_refresh();
  pm__books_drain();
  scan(now);
  pm__books_retire();
  roll(now);
  pm__python_watch(now);
  struct pm_governor_facts governor = pm__governor_facts(pm__clock_process());
  collector.profile->collector_ns = pm__clock_thread_self() - collector.cpu_base + governor.own_ns;
  pm__reporter_round(now, collector.profile->collector_ns);
}

uint64_t pm__collector_cpu(void) { return collector.profile->collector_ns; }

static void finish(void) {
  pm__reporter_end();
  collector.next_scan = 0;
  collect();
  pm__books_settle(PM_BOOK_SESSION, 0);
  pm__profile_note_events(collector.profile, pm__collector_events());
  pm__profile_roll(collector.profile, collector.profile->end_ns);
  pm__profile_settle_rest(collector.profile);
}

/* The profile lock is let go meanwhile. */
static void wait_until(uint64_t ns) {
  struct timespec until = {.tv_sec = (time_t)(ns / 1000000000u),
                           .tv_nsec = (long)(ns % 1000000000u)};
  pthread_cond_timedwait(&collector.wake, &collector.lock, &until);
}

static void wait_a_round(void) { wait_until(pm__clock_monotonic() + DRAIN_MS * 1000000u); }

/* A process that ends meanwhile, as most children do, pays for nothing else. */
static bool wait_first(void) {
  uint64_t end = pm__clock_monotonic() + collector.begin.delay_ms * (uint64_t)1000000;
  pthread_mutex_lock(&collector.lock);
  while (!collector.stopping && pm__clock_monotonic() < end) wait_until(end);
  bool stopping = collector.stopping;
  pthread_mutex_unlock(&collector.lock);
  return !stopping;
}

static void await_python(void) {
  uint64_t now = pm__clock_monotonic(), end = now + ARRIVAL_MS * 1000000u;
  pm__arrival_begin(collector.begin.let_in);
  pthread_mutex_lock(&collector.lock);
  while (!collector.stopping && pm__arrival_is_near() && now < end) {
    pm__arrival_round(now);
    wait_until(now + NAP_MS * 1000000u);
    now = pm__clock_monotonic();
  }
  pthread_mutex_unlock(&collector.lock);
}

/* With all tables there, threads can find the marks of frames that were running before. */
static void ask_for_marks(void *context, struct pm_sampled *sampled) {
  (void)context;
  struct pm_shadow *shadow = sampled->thread.shadow;
  if (shadow != NULL) atomic_fetch_or(&shadow->attention, PM_ATTENTION_MARKS);
}

static void get_ready(void) {
  if (collector.begin.prepare != NULL) collector.begin.prepare();
  pm__unwind_refresh();
  pm__sampler_each(ask_for_marks, NULL);
  if (collector.begin.let_in != NULL) await_python();
}

/* What threads used before this is not the session's. */
static void begin(void) {
  pm__sampler_scan();
  pm__profile_begin(collector.profile);
  pm__profile_begin_events(collector.profile, pm__collector_events());
  collector.cpu_base = pm__clock_thread_self();
  pm__sampler_arm();
  pm__reporter_begin(collector.profile->start_ns);
}

/* Waits for what the program's sink does, with no lock held. False: it has forked, this is the child. */
static bool report(uint32_t generation) {
  tell_of_signal();
  pm__reporter_write();
  return collector.generation == generation;
}

static void *collector_main(void *argument) {
  uint32_t generation = (uint32_t)(uintptr_t)argument;
  pthread_setname_np(pthread_self(), "pyrometer");
  pm__sampler_exclude(PM_OWN_COLLECTOR, pm__thread_id());
  if (wait_first()) get_ready();
  pthread_mutex_lock(&collector.lock);
  if (!collector.stopping) begin();
  collector.armed = true;
  pthread_cond_broadcast(&collector.wake);
  while (!collector.stopping) {
    collect();
    pthread_mutex_unlock(&collector.lock);
    if (!report(generation)) return NULL;
    pm__arrival_round(pm__clock_monotonic());
    pthread_mutex_lock(&collector.lock);
    if (!collector.stopping) wait_a_round();
  }
  finish();
  pthread_mutex_unlock(&collector.lock);
  return NULL;
}

int pm__collector_start(struct pm_profile *profile, const struct pm_collector_begin *begin) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&collector.wake, &attributes);
  pthread_condattr_destroy(&attributes);
  collector.profile = profile;
  collector.begin = *begin;
  pm__books_open(PM_BOOK_SESSION, profile);
  collector.stopping = collector.armed = false;
  collector.next_scan = 0;
  collector.signal_told = 0;
  void *generation = (void *)(uintptr_t)++collector.generation;
  collector.running = pm__thread_start(&collector.thread, collector_main, generation) == 0;
  return collector.running ? PYROMETER_OK : PYROMETER_E_THREAD;
}

void pm__collector_stop(void) {
  pthread_mutex_lock(&collector.lock);
  collector.stopping = true;
  pthread_cond_broadcast(&collector.wake);
  pthread_mutex_unlock(&collector.lock);
  if (collector.running) pthread_join(collector.thread, NULL);
  collector.running = false;
}

void pm__collector_rename(void) { pm__books_rename(PM_BOOK_SESSION); }

void pm__collector_lock(void) {
  pthread_mutex_lock(&collector.lock);
  if (!collector.running) return;
  uint64_t now = pm__clock_monotonic();
  pm__books_drain();
  roll(now);
  pm__books_settle(PM_BOOK_SESSION, slack_of_live());
  pm__profile_note_events(collector.profile, pm__collector_events());
}

void pm__collector_unlock(void) { pthread_mutex_unlock(&collector.lock); }

static void count_thread(void *context, struct pm_sampled *sampled) {
  pm__profile_count(context, &sampled->thread);
}

struct pm_profile_counts pm__collector_counts(void) {
  struct pm_profile_counts sum = collector.profile->ended;
  pm__sampler_each(count_thread, &sum);
  struct pm_sampler_facts facts = pm__sampler_facts();
  for (int i = 0; i < PM_LOST_KINDS; i++) {
    sum.signals += facts.lost[i];
    sum.lost[i] += facts.lost[i];
  }
  return sum;
}

struct pm_profile_events pm__collector_events(void) {
  struct pm_profile_counts counts = pm__collector_counts();
  struct pm_governor_facts governor = pm__governor_facts(pm__clock_process());
  return (struct pm_profile_events){.paused = governor.active,
                                    .count = pm__profile_count_events(&counts),
                                    .on_ns = governor.on_ns,
                                    .switch_ns = governor.switch_ns,
                                    .bursts = governor.bursts};
}

bool pm__collector_wait_armed(uint32_t timeout_ms) {
  uint64_t deadline = pm__clock_monotonic() + timeout_ms * (uint64_t)1000000;
  pthread_mutex_lock(&collector.lock);
  while (!collector.armed && pm__clock_monotonic() < deadline) wait_until(deadline);
  bool armed = collector.armed;
  pthread_mutex_unlock(&collector.lock);
  return armed;
}

void pm__collector_forked(void) {
  pthread_mutex_init(&collector.lock, NULL);
  collector.running = false;
  collector.generation++;
}
