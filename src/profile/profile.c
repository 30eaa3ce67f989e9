/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, windows and accounting of a running profile. */
#include "profile/profile.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "python/python.h"
enum { COUNT_TRIES = 100 };

static const uint64_t minute_ns = 60000000000u;
static const uint64_t unseen_least_ns = 2000000u;

bool pm__profile_init(struct pm_profile *profile, uint32_t rate_hz) {
  memset(profile, 0, sizeof *profile);
  if (!pm__tree_init(&profile->tree)) return false;
  profile->rate_hz = rate_hz;
  profile->window_ns = minute_ns;
  profile->window_count = 1;
  pm__profile_begin(profile);
  pm__profile_add_thread(profile, 0, "(exited threads)");
  if (profile->thread_count == 1) return true;
  pm__profile_free(profile);
  return false;
}

void pm__profile_begin(struct pm_profile *profile) {
  profile->start_ns = profile->end_ns = pm__clock_monotonic();
  profile->start_ms = profile->end_ms = pm__clock_realtime() / 1000000u;
  profile->windows[0].start_ms = profile->start_ms;
  profile->cpu_start_ns = pm__clock_process();
}

void pm__profile_begin_events(struct pm_profile *profile, struct pm_profile_events sums) {
  profile->events_base = sums;
}

void pm__profile_note_events(struct pm_profile *profile, struct pm_profile_events sums) {
  const struct pm_profile_events *base = &profile->events_base;
  profile->events = (struct pm_profile_events){.paused = sums.paused,
                                               .count = sums.count - base->count,
                                               .on_ns = sums.on_ns - base->on_ns,
                                               .switch_ns = sums.switch_ns - base->switch_ns,
                                               .bursts = sums.bursts - base->bursts};
}

uint64_t pm__profile_events_ns(const struct pm_profile *profile) {
  return (uint64_t)((double)profile->events.count * pm__python_event_ns());
}

/* Samples do not see what instrumented code costs beside the calls of our callbacks. */
static double events_cost(const struct pm_profile *profile) {
  double counted = (double)pm__profile_events_ns(profile);
  return counted > (double)profile->own_ns ? counted : (double)profile->own_ns;
}

double pm__profile_events_share(const struct pm_profile *profile) {
  if (!profile->events.paused) return 1.0;
  double on = (double)profile->events.on_ns, all = (double)profile->cpu_ns;
  if (profile->estimated == 0 && on > all * 0.995)
    return 1.0; /* the clocks are not read at one instant */
  double cost = events_cost(profile);
  on = on > 2 * cost ? on - cost : on / 2;
  all = all > 2 * cost ? all - cost : all / 2;
  if (all <= 0) return 1.0;
  double share = on / all;
  return share > 1.0 ? 1.0 : share < 1e-3 ? 1e-3 : share;
}

bool pm__profile_begin_calls(struct pm_profile *profile) {
  uint32_t count = pm__code_count() + 1;
  uint64_t *calls = malloc(sizeof *calls * count);
  if (calls == NULL) return false;
  for (uint32_t id = 0; id < count; id++) calls[id] = pm__code_calls(id);
  free(profile->calls_before);
  profile->calls_before = calls;
  profile->codes_before = count;
  return true;
}

void pm__profile_free(struct pm_profile *profile) {
  pm__tree_free(&profile->tree);
  free(profile->threads);
  free(profile->calls_before);
  memset(profile, 0, sizeof *profile);
}

static bool has_thread_room(struct pm_profile *profile) {
  if (profile->thread_count < profile->thread_room) return true;
  if (profile->thread_count >= PM_PROFILE_THREADS_MAX) return false;
  uint32_t room = profile->thread_room == 0 ? 16 : profile->thread_room * 2;
  struct pm_profile_thread *bigger = realloc(profile->threads, sizeof *bigger * room);
  if (bigger == NULL) return false;
  profile->threads = bigger;
  profile->thread_room = room;
  return true;
}

uint32_t pm__profile_add_thread(struct pm_profile *profile, int32_t tid, const char *name) {
  if (!has_thread_room(profile)) return 0;
  uint32_t root = pm__tree_add_root(&profile->tree);
  if (root == PM_TREE_NONE) return 0;
  struct pm_profile_thread *thread = &profile->threads[profile->thread_count];
  *thread = (struct pm_profile_thread){.tid = tid, .root = root, .main = tid == getpid()};
  snprintf(thread->name, sizeof thread->name, "%s", name);
  return profile->thread_count++;
}

static void join_windows(struct pm_profile *profile) {
  pm__tree_coalesce(&profile->tree);
  profile->window_ns *= 2;
  profile->window_count /= 2;
  for (uint32_t i = 0; i < profile->window_count; i++) {
    profile->windows[i] = (struct pm_profile_window){.start_ms = profile->windows[2 * i].start_ms,
                                                     .cpu_ns = profile->windows[2 * i].cpu_ns +
                                                               profile->windows[2 * i + 1].cpu_ns};
  }
}

/* Books the process's CPU since the last call on the current window. */
static void settle_process(struct pm_profile *profile) {
  profile->cpu_ns = pm__clock_process() - profile->cpu_start_ns;
  profile->windows[profile->window_count - 1].cpu_ns += profile->cpu_ns - profile->window_cpu_ns;
  profile->window_cpu_ns = profile->cpu_ns;
}

void pm__profile_roll(struct pm_profile *profile, uint64_t now) {
  settle_process(profile);
  while ((now - profile->start_ns) / profile->window_ns >= profile->window_count) {
    if (profile->window_count == PM_WINDOWS_MAX) {
      join_windows(profile);
      continue;
    }
    uint64_t offset_ms = profile->window_count * (profile->window_ns / 1000000u);
    profile->windows[profile->window_count++] =
        (struct pm_profile_window){.start_ms = profile->start_ms + offset_ms};
  }
}

static uint64_t above(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* Books ns on a pseudo frame directly below a thread's root. */
static void book_pseudo(struct pm_profile *profile, uint32_t thread, enum pm_pseudo pseudo,
                        uint64_t ns) {
  if (ns == 0) return;
  uint32_t root = profile->threads[thread].root;
  uint32_t node = pm__tree_child(&profile->tree, root, pm__frame_key_pseudo(pseudo));
  if (node != PM_TREE_NONE) pm__tree_book(&profile->tree, node, profile->window_count - 1, ns);
}

void pm__profile_settle_thread(struct pm_profile *profile, uint32_t index, uint64_t cpu_ns,
                               uint64_t handler_ns, uint64_t slack_ns) {
  struct pm_profile_thread *thread = &profile->threads[index];
  uint64_t handler = above(handler_ns, thread->handler_ns);
  book_pseudo(profile, index, PM_PSEUDO_OWN, handler);
  thread->handler_ns += handler;
  thread->sampled_ns += handler;
  profile->sampled_ns += handler;
  if (cpu_ns > thread->cpu_ns) thread->cpu_ns = cpu_ns;
  uint64_t unsampled = above(thread->cpu_ns, thread->sampled_ns + thread->unsampled_ns + slack_ns);
  book_pseudo(profile, index, PM_PSEUDO_UNSAMPLED, unsampled);
  thread->unsampled_ns += unsampled;
}

void pm__profile_settle_rest(struct pm_profile *profile) {
  uint64_t known = profile->collector_ns;
  for (uint32_t i = 1; i < profile->thread_count; i++) known += profile->threads[i].cpu_ns;
  uint64_t rest = above(profile->cpu_ns, known);
  /* The clocks were not read at one instant: less than that is no thread. */
  if (rest < unseen_least_ns) return;
  profile->threads[0].reason = "ended before they were seen";
  pm__profile_settle_thread(profile, 0, rest, 0, 0);
}

static uint64_t value_of(const _Atomic uint64_t *counter) {
  return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)counter, memory_order_relaxed);
}

static void count_shadow(struct pm_profile_counts *sum, const struct pm_shadow *shadow) {
  for (int i = 0; i < PM_EVENT_KINDS; i++) sum->events[i] += value_of(&shadow->events[i]);
  sum->overflows += value_of(&shadow->overflows);
  sum->resyncs += value_of(&shadow->resyncs);
  if (shadow->depth_max > sum->depth_max) sum->depth_max = shadow->depth_max;
}

static bool has_handler(const struct pm_thread *thread) {
  return atomic_load((_Atomic uint32_t *)(uintptr_t)&thread->in_handler) != 0;
}

/* What the handler counts of a signal. False: one was in the middle of it. */
static bool read_balance(struct pm_profile_counts *counts, const struct pm_thread *thread) {
  bool inside = has_handler(thread);
  counts->signals = value_of(&thread->signals);
  counts->stored = value_of(&thread->stored);
  for (int i = 0; i < PM_LOST_KINDS; i++) counts->lost[i] = value_of(&thread->lost[i]);
  atomic_thread_fence(memory_order_acquire);
  return !inside && !has_handler(thread) && value_of(&thread->signals) == counts->signals;
}

/* A thread may be held up in its handler for long: after some tries the sum is one off. */
static void count_balance(struct pm_profile_counts *sum, const struct pm_thread *thread) {
  struct pm_profile_counts now;
  for (int i = 0; !read_balance(&now, thread) && i < COUNT_TRIES; i++) sched_yield();
  sum->signals += now.signals;
  sum->stored += now.stored;
  for (int i = 0; i < PM_LOST_KINDS; i++) sum->lost[i] += now.lost[i];
}

void pm__profile_count(struct pm_profile_counts *sum, const struct pm_thread *thread) {
  count_balance(sum, thread);
  sum->lost_ns += value_of(&thread->lost_ns);
  sum->handler_ns += value_of(&thread->handler_ns);
  sum->snapshot_failures += value_of(&thread->snapshot_failures);
  if (thread->shadow != NULL) count_shadow(sum, thread->shadow);
}

uint64_t pm__profile_count_events(const struct pm_profile_counts *counts) {
  uint64_t sum = 0;
  for (int i = 0; i < PM_EVENT_KINDS; i++) sum += counts->events[i];
  return sum;
}

double pm__profile_overhead(const struct pm_profile *profile) {
  uint64_t handler = 0;
  for (uint32_t i = 0; i < profile->thread_count; i++) handler += profile->threads[i].handler_ns;
  uint64_t own =
      (uint64_t)events_cost(profile) + handler + profile->collector_ns + profile->events.switch_ns;
  return profile->cpu_ns == 0 ? 0.0 : 100.0 * (double)own / (double)profile->cpu_ns;
}

/* A stray sample at the edge of a call is not worth a word. */
const char *pm__profile_reason(const struct pm_profile_thread *thread) {
  if (thread->reason != NULL) return thread->reason;
  bool some = thread->unfollowed_ns > 0 && thread->unfollowed_ns >= thread->sampled_ns / 20;
  return some ? "ran in a subinterpreter (or made no call yet): Python frames not followed" : "";
}
