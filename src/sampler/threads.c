/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of threads: see registry.h. */
#include <pthread.h>
#include <pyrometer.h>
#include <sched.h>

#include "sampler/internal.h"
#include "sampler/registry.h"
#include "signal/handler.h"

pthread_mutex_t pm__registry_lock = PTHREAD_MUTEX_INITIALIZER;
struct pm_registry pm__registry;

static const uint64_t handler_wait_ns = 1000000000u;
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

/*
 * A thread that is seen to begin is young: sampled at every tick that finds it
 * running, until it has used enough CPU to be worth the session's own rate. Of
 * threads that live a few milliseconds most would go unseen otherwise. Weights come
 * from the CPU clock, so samples that follow closely are light and distort nothing.
 */
static void start_timer(struct pm_sampled *sampled) {
  uint64_t tick = 1000000000u / PM_RATE_MAX;
  if (pm__registry.facts.signal == 0) {
    sampled->reason = "the program has taken all signals";
    return;
  }
  sampled->young = sampled->cpu_base == 0 && tick < pm__registry.period_ns;
  uint64_t first = sampled->cpu_base == 0 ? 1 : pm__timer_random(pm__registry.period_ns);
  if (pm__timer_thread(sampled, sampled->young ? tick : pm__registry.period_ns, first)) return;
  pm__registry.facts.timers_refused++;
  pm__registry.facts.process_timer = pm__timer_process(pm__registry.period_ns);
  if (!pm__registry.facts.process_timer) sampled->reason = "no CPU timer could be made";
}

struct pm_sampled *pm__registry_add(int32_t tid) {
  uint64_t cpu;
  struct pm_sampled *sampled = pm__clock_thread(tid, &cpu) ? pm__pool_take() : NULL;
  if (sampled == NULL) return NULL;
  struct pm_thread *thread = &sampled->thread;
  atomic_store(&thread->tid, tid);
  atomic_store(&thread->last_cpu, cpu);
  sampled->cpu_base = pm__registry.at_start ? cpu : 0;
  atomic_store(&sampled->cpu_now, cpu);
  atomic_store(&thread->state, PM_THREAD_LIVE);
  pm__thread_insert(thread);
  if (pm__registry.armed) start_timer(sampled);
  return sampled;
}

void pm__registry_end(struct pm_sampled *sampled) {
  if (atomic_load(&sampled->thread.state) != PM_THREAD_LIVE) return;
  pm__timer_delete(sampled);
  atomic_store(&sampled->thread.state, PM_THREAD_DEAD);
}

/*
 * Runs on a thread that ends: its last CPU reading is exact, and no signal comes any
 * more. Which block it has is asked anew: the session may be another one by now.
 */
static void at_thread_exit(void *value) {
  (void)value;
  pthread_mutex_lock(&pm__registry_lock);
  struct pm_thread *thread = pm__registry.started ? pm__thread_find(pm__thread_id()) : NULL;
  if (thread != NULL) {
    atomic_store(&pm__sampled_of(thread)->cpu_now, pm__clock_thread_self());
    pm__registry_end(pm__sampled_of(thread));
  }
  pthread_mutex_unlock(&pm__registry_lock);
}

static void make_exit_key(void) { pthread_key_create(&exit_key, at_thread_exit); }

int pm__sampler_start(const struct pm_sampler_options *options) {
  int error = pm__install_handler();
  if (error != PYROMETER_OK) return error;
  pthread_mutex_lock(&pm__registry_lock);
  bool reserved = pm__pool_reserve();
  pm__registry = (struct pm_registry){.started = reserved,
                                      .at_start = true,
                                      .period_ns = 1000000000u / options->rate_hz,
                                      .shadows_left = options->python_threads,
                                      .facts.signal = pm__sampler_signal()};
  for (int i = 0; i < PM_LOST_KINDS; i++) pm__registry.lost_before[i] = pm__signal_state.lost[i];
  pthread_mutex_unlock(&pm__registry_lock);
  if (!reserved) return PYROMETER_E_MEMORY;
  pm__sampler_scan();
  pthread_mutex_lock(&pm__registry_lock);
  pm__registry.at_start = false;
  pthread_mutex_unlock(&pm__registry_lock);
  return PYROMETER_OK;
}

/* What a thread used before sampling began is not the session's. */
static void begin_thread(struct pm_sampled *sampled) {
  uint64_t cpu;
  if (!pm__clock_thread(atomic_load(&sampled->thread.tid), &cpu)) return;
  atomic_store(&sampled->thread.last_cpu, cpu);
  sampled->cpu_base = cpu;
  atomic_store(&sampled->cpu_now, cpu);
  start_timer(sampled);
}

static void delete_timers(void) {
  for (uint32_t i = 0; i < pm__pool_count(); i++) pm__timer_delete(pm__pool_block(i));
  pm__timer_process_delete();
}

void pm__sampler_pace(uint32_t rate_hz) {
  pthread_mutex_lock(&pm__registry_lock);
  pm__registry.period_ns = 1000000000u / rate_hz;
  for (uint32_t i = 0; i < pm__pool_count() && pm__registry.armed; i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    bool live = atomic_load(&sampled->thread.state) == PM_THREAD_LIVE;
    if (!live || sampled->young) continue;
    pm__timer_set(sampled, pm__registry.period_ns, pm__timer_random(pm__registry.period_ns));
  }
  pthread_mutex_unlock(&pm__registry_lock);
}

/*
 * A signal of ours that meets the program's handler, or none, would change the program:
 * without a free signal no more are sent.
 */
static void check_signal(void) {
  if (pm__install_is_in_place()) return;
  delete_timers();
  pm__registry.facts.signal_lost = pm__sampler_signal();
  bool found = pm__install_handler() == PYROMETER_OK;
  pm__registry.facts.signal = found ? pm__sampler_signal() : 0;
  if (!found || !pm__registry.armed) return;
  pm__timer_process_reserve();
  for (uint32_t i = 0; i < pm__pool_count(); i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    if (atomic_load(&sampled->thread.state) == PM_THREAD_LIVE) start_timer(sampled);
  }
}

void pm__sampler_arm(void) {
  pthread_mutex_lock(&pm__registry_lock);
  check_signal();
  pm__registry.facts.signal_lost = 0; /* that was before the session */
  pm__registry.armed = true;
  pm__timer_process_reserve();
  atomic_store(&pm__signal_state.active, true);
  for (uint32_t i = 0; i < pm__pool_count(); i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    if (atomic_load(&sampled->thread.state) == PM_THREAD_LIVE) begin_thread(sampled);
  }
  pthread_mutex_unlock(&pm__registry_lock);
}

void pm__sampler_check_signal(void) {
  pthread_mutex_lock(&pm__registry_lock);
  if (pm__registry.armed) check_signal();
  pthread_mutex_unlock(&pm__registry_lock);
}

/*
 * A handler takes microseconds, once its thread gets a processor. Bounded: a thread
 * that was stopped in one must not hang us. False: there is still one inside.
 */
static bool is_left(struct pm_sampled *sampled, uint64_t deadline) {
  while (atomic_load(&sampled->thread.in_handler) != 0) {
    if (pm__clock_monotonic() >= deadline) return false;
    sched_yield();
  }
  return true;
}

static void wait_for_handlers(void) {
  uint64_t deadline = pm__clock_monotonic() + handler_wait_ns;
  for (uint32_t i = 0; i < pm__pool_count(); i++) is_left(pm__pool_block(i), deadline);
}

void pm__sampler_disarm(void) {
  pthread_mutex_lock(&pm__registry_lock);
  pm__registry.armed = false;
  delete_timers();
  atomic_store(&pm__signal_state.active, false);
  pthread_mutex_unlock(&pm__registry_lock);
  wait_for_handlers();
}

/* A block that its thread is still inside of is given up rather than reused. */
static void retire(struct pm_sampled *sampled) {
  pm__timer_delete(sampled);
  pm__thread_remove(&sampled->thread);
  if (sampled->thread.shadow != NULL) pm__registry.shadows_left++;
  atomic_store(&sampled->thread.tid, 0);
  atomic_store(&sampled->thread.state, PM_THREAD_FREE);
  if (is_left(sampled, pm__clock_monotonic() + handler_wait_ns)) pm__pool_give(sampled);
}

void pm__sampler_retire(struct pm_sampled *sampled) {
  pthread_mutex_lock(&pm__registry_lock);
  retire(sampled);
  pthread_mutex_unlock(&pm__registry_lock);
}

void pm__sampler_reset(void) {
  pthread_mutex_lock(&pm__registry_lock);
  pm__registry.started = false;
  for (uint32_t i = 0; i < pm__pool_count(); i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    if (atomic_load(&sampled->thread.state) != PM_THREAD_FREE) retire(sampled);
  }
  pthread_mutex_unlock(&pm__registry_lock);
}

void pm__sampler_exclude(enum pm_own_thread which, int32_t tid) {
  pthread_mutex_lock(&pm__registry_lock);
  pm__registry.excluded[which] = tid;
  pthread_mutex_unlock(&pm__registry_lock);
}

/* The caller's block; the lock is held. */
static struct pm_sampled *find_or_add_caller(void) {
  int32_t tid = pm__thread_id();
  struct pm_thread *thread = pm__thread_find(tid);
  if (thread != NULL && atomic_load(&thread->state) == PM_THREAD_DEAD) return NULL;
  struct pm_sampled *sampled = thread != NULL ? pm__sampled_of(thread) : pm__registry_add(tid);
  if (sampled == NULL) pm__registry.facts.threads_beyond_limit++;
  return sampled;
}

/* What only the thread itself can tell: its stack, and when it ends. */
struct own_facts {
  bool known;
  uintptr_t stack_lo, stack_hi;
};

static struct own_facts read_own_facts(void) {
  struct own_facts facts;
  pthread_once(&exit_key_once, make_exit_key);
  facts.known = pm__stack_of_caller(&facts.stack_lo, &facts.stack_hi);
  if (pthread_getspecific(exit_key) == NULL) pthread_setspecific(exit_key, &pm__registry);
  return facts;
}

/* The lock is held. */
static void complete_caller(struct pm_sampled *sampled, const struct own_facts *facts) {
  if (!facts->known) return;
  atomic_store(&sampled->thread.stack_hi, facts->stack_hi);
  atomic_store(&sampled->thread.stack_lo, facts->stack_lo);
}

/* The lock is held. */
static struct pm_shadow *shadow_of(struct pm_sampled *sampled) {
  if (sampled->thread.shadow != NULL) return sampled->thread.shadow;
  if (pm__registry.shadows_left == 0 || !pm__pool_add_shadow(sampled)) {
    pm__registry.facts.shadows_refused++;
    return NULL;
  }
  pm__registry.shadows_left--;
  return sampled->thread.shadow;
}

/*
 * Under one lock: without a GIL, sessions may change in the middle of an event, and
 * then a block found before is somebody else's.
 */
static bool find_caller(struct pm_shadow **shadow) {
  struct own_facts facts = read_own_facts();
  pthread_mutex_lock(&pm__registry_lock);
  struct pm_sampled *sampled = pm__registry.started ? find_or_add_caller() : NULL;
  if (sampled != NULL) complete_caller(sampled, &facts);
  if (sampled != NULL && shadow != NULL) *shadow = shadow_of(sampled);
  pthread_mutex_unlock(&pm__registry_lock);
  return sampled != NULL;
}

bool pm__sampler_register(void) { return find_caller(NULL); }

struct pm_shadow *pm__sampler_shadow(void) {
  struct pm_shadow *shadow = NULL;
  find_caller(&shadow);
  return shadow;
}

struct pm_shadow *pm__sampler_shadow_of(int32_t tid) {
  pthread_mutex_lock(&pm__registry_lock);
  struct pm_thread *thread = pm__registry.started ? pm__thread_find(tid) : NULL;
  bool live = thread != NULL && atomic_load(&thread->state) == PM_THREAD_LIVE;
  struct pm_shadow *shadow = live ? shadow_of(pm__sampled_of(thread)) : NULL;
  pthread_mutex_unlock(&pm__registry_lock);
  return shadow;
}

/* A thread that has said itself that it ends need not wait for the next scan. */
bool pm__sampler_is_gone(struct pm_sampled *sampled) {
  uint64_t cpu;
  return sampled->gone || (atomic_load(&sampled->thread.state) == PM_THREAD_DEAD &&
                           !pm__clock_thread(atomic_load(&sampled->thread.tid), &cpu));
}

void pm__sampler_each(void (*visit)(void *context, struct pm_sampled *sampled), void *context) {
  pthread_mutex_lock(&pm__registry_lock);
  uint32_t count = pm__pool_count();
  pthread_mutex_unlock(&pm__registry_lock);
  for (uint32_t i = 0; i < count; i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    if (atomic_load(&sampled->thread.state) != PM_THREAD_FREE) visit(context, sampled);
  }
}

bool pm__sampler_tables_in_use(const struct pm_tables *tables) {
  for (uint32_t i = 0; i < pm__pool_count(); i++) {
    if (atomic_load(&pm__pool_block(i)->thread.tables) == tables) return true;
  }
  return false;
}

struct pm_sampler_facts pm__sampler_facts(void) {
  pthread_mutex_lock(&pm__registry_lock);
  struct pm_sampler_facts facts = pm__registry.facts;
  for (int i = 0; i < PM_LOST_KINDS; i++) {
    facts.lost[i] = pm__signal_state.lost[i] - pm__registry.lost_before[i];
  }
  pthread_mutex_unlock(&pm__registry_lock);
  return facts;
}

void pm__sampler_forked(void) {
  pm__registry_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  atomic_store(&pm__signal_state.active, false);
  pm__registry.started = pm__registry.armed = false;
  pm__threads_forked();
  pm__pool_forked();
  pm__timer_forked();
}
