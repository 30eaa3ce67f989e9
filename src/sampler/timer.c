/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU-time timers: one a thread, aimed at that thread (SIGEV_THREAD_ID), or one
 * for the process where the kernel has no more of them (EAGAIN: timers count
 * against RLIMIT_SIGPENDING, which all processes of the user share).
 */
#include <signal.h>
#include <string.h>
#include <sys/random.h>

#include "sampler/internal.h"
#include "signal/handler.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static timer_t process_timer;
static bool has_process_timer, process_timer_runs;

/* The clock of another thread's CPU time, as the kernel encodes it: CPUCLOCK_SCHED, per thread. */
static clockid_t clock_of(int32_t tid) { return (clockid_t)((~(unsigned)tid << 3) | 6u); }

uint64_t pm__timer_random(uint64_t limit) {
  uint64_t value = 0;
  if (getrandom(&value, sizeof value, GRND_NONBLOCK) != (ssize_t)sizeof value) {
    value = pm__clock_monotonic() * 0x9E3779B97F4A7C15u >> 16;
  }
  return value % limit + 1;
}

static bool arm(timer_t timer, uint64_t period_ns, uint64_t first) {
  struct itimerspec when = {
      .it_interval = {.tv_sec = (time_t)(period_ns / 1000000000u),
                      .tv_nsec = (long)(period_ns % 1000000000u)},
      .it_value = {.tv_sec = (time_t)(first / 1000000000u), .tv_nsec = (long)(first % 1000000000u)},
  };
  return timer_settime(timer, 0, &when, NULL) == 0;
}

bool pm__timer_thread(struct pm_sampled *sampled, uint64_t period_ns, uint64_t first_ns) {
  int32_t tid = atomic_load(&sampled->thread.tid);
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = pm__sampler_signal();
  event.sigev_value.sival_ptr = &sampled->thread;
  event.sigev_notify_thread_id = tid;
  if (timer_create(clock_of(tid), &event, &sampled->timer) != 0) return false;
  sampled->has_timer = true;
  if (arm(sampled->timer, period_ns, first_ns)) return true;
  pm__timer_delete(sampled);
  return false;
}

void pm__timer_set(struct pm_sampled *sampled, uint64_t period_ns, uint64_t first_ns) {
  if (sampled->has_timer) arm(sampled->timer, period_ns, first_ns);
}

void pm__timer_delete(struct pm_sampled *sampled) {
  if (!sampled->has_timer) return;
  timer_delete(sampled->timer);
  sampled->has_timer = false;
}

void pm__timer_process_reserve(void) {
  if (has_process_timer) return;
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = pm__sampler_signal();
  event.sigev_value.sival_ptr = &pm__signal_state;
  has_process_timer = timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &process_timer) == 0;
}

bool pm__timer_process(uint64_t period_ns) {
  if (!process_timer_runs)
    process_timer_runs = has_process_timer && arm(process_timer, period_ns, period_ns);
  return process_timer_runs;
}

void pm__timer_forked(void) { has_process_timer = process_timer_runs = false; }

void pm__timer_process_delete(void) {
  if (has_process_timer) timer_delete(process_timer);
  has_process_timer = process_timer_runs = false;
}
