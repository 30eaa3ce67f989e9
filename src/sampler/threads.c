/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of threads: found by scanning /proc/self/task or by their own first event. */
#include "sampler/sampler.h"

#include <dirent.h>
#include <pthread.h>
#include <pyrometer.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/internal.h"
#include "signal/handler.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  bool started, armed;
  bool at_start; /* threads found now were there before the session */
  uint64_t period_ns;
  uint32_t shadows_left;
  int32_t excluded;
  struct pm_sampler_facts facts;
  uint64_t lost_before[PM_LOST_KINDS]; /* signals that found no thread, before the session */
} state;
enum { START_TRIES = 8 };
static const uint64_t handler_wait_ns = 1000000000u;
static pthread_key_t exit_key;
static pthread_once_t exit_key_once = PTHREAD_ONCE_INIT;

static struct pm_sampled *sampled_of(struct pm_thread *thread) {
  return (struct pm_sampled *)(void *)thread;
}

/*
 * A thread that is seen to begin is young: sampled at every tick that finds it
 * running, until it has used enough CPU to be worth the session's own rate. Of
 * threads that live a few milliseconds most would go unseen otherwise. Weights come
 * from the CPU clock, so samples that follow closely are light and distort nothing.
 */
static void start_timer(struct pm_sampled *sampled) {
  uint64_t tick = 1000000000u / PM_RATE_MAX;
  sampled->young = sampled->cpu_base == 0 && tick < state.period_ns;
  uint64_t first = sampled->cpu_base == 0 ? 1 : pm__timer_random(state.period_ns);
  if (pm__timer_thread(sampled, sampled->young ? tick : state.period_ns, first)) return;
  state.facts.timers_refused++;
  state.facts.process_timer = pm__timer_process(state.period_ns);
  if (!state.facts.process_timer) sampled->reason = "no CPU timer could be made";
}

static void outgrow_youth(struct pm_sampled *sampled, uint64_t cpu) {
  static const uint64_t young_ns = 100000000u;
  if (!sampled->young || cpu < young_ns) return;
  sampled->young = false;
  pm__timer_set(sampled, state.period_ns, pm__timer_random(state.period_ns));
}

/* Takes a block for `tid`; the lock is held. */
static struct pm_sampled *add_thread(int32_t tid) {
  uint64_t cpu;
  struct pm_sampled *sampled = pm__clock_thread(tid, &cpu) ? pm__pool_take() : NULL;
  if (sampled == NULL) return NULL;
  struct pm_thread *thread = &sampled->thread;
  atomic_store(&thread->tid, tid);
  atomic_store(&thread->last_cpu, cpu);
  sampled->cpu_base = state.at_start ? cpu : 0;
  atomic_store(&sampled->cpu_now, cpu);
  atomic_store(&thread->state, PM_THREAD_LIVE);
  pm__thread_insert(thread);
  if (state.armed) start_timer(sampled);
  return sampled;
}

static void end_thread(struct pm_sampled *sampled) {
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
  pthread_mutex_lock(&lock);
  struct pm_thread *thread = state.started ? pm__thread_find(pm__thread_id()) : NULL;
  if (thread != NULL) {
    atomic_store(&sampled_of(thread)->cpu_now, pm__clock_thread_self());
    end_thread(sampled_of(thread));
  }
  pthread_mutex_unlock(&lock);
}

static void make_exit_key(void) { pthread_key_create(&exit_key, at_thread_exit); }

int pm__sampler_start(const struct pm_sampler_options *options) {
  int error = pm__install_handler();
  if (error != PYROMETER_OK) return error;
  pthread_mutex_lock(&lock);
  bool reserved = pm__pool_reserve();
  memset(&state, 0, sizeof state);
  state.started = reserved;
  state.at_start = true;
  state.period_ns = 1000000000u / options->rate_hz;
  state.shadows_left = options->python_threads;
  state.facts.signal = pm__install_signal();
  for (int i = 0; i < PM_LOST_KINDS; i++) state.lost_before[i] = pm__signal_state.lost[i];
  pthread_mutex_unlock(&lock);
  if (!reserved) return PYROMETER_E_MEMORY;
  pm__sampler_scan();
  pthread_mutex_lock(&lock);
  state.at_start = false;
  pthread_mutex_unlock(&lock);
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

void pm__sampler_arm(void) {
  pthread_mutex_lock(&lock);
  state.armed = true;
  pm__timer_process_reserve();
  atomic_store(&pm__signal_state.active, true);
  for (uint32_t i = 0; i < pm__pool_count(); i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    if (atomic_load(&sampled->thread.state) == PM_THREAD_LIVE) begin_thread(sampled);
  }
  pthread_mutex_unlock(&lock);
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
  pthread_mutex_lock(&lock);
  state.armed = false;
  for (uint32_t i = 0; i < pm__pool_count(); i++) pm__timer_delete(pm__pool_block(i));
  pm__timer_process_delete();
  atomic_store(&pm__signal_state.active, false);
  pthread_mutex_unlock(&lock);
  wait_for_handlers();
}

/* A block that its thread is still inside of is given up rather than reused. */
static void retire(struct pm_sampled *sampled) {
  pm__timer_delete(sampled);
  pm__thread_remove(&sampled->thread);
  if (sampled->thread.shadow != NULL) state.shadows_left++;
  atomic_store(&sampled->thread.tid, 0);
  atomic_store(&sampled->thread.state, PM_THREAD_FREE);
  if (is_left(sampled, pm__clock_monotonic() + handler_wait_ns)) pm__pool_give(sampled);
}

void pm__sampler_retire(struct pm_sampled *sampled) {
  pthread_mutex_lock(&lock);
  retire(sampled);
  pthread_mutex_unlock(&lock);
}

void pm__sampler_reset(void) {
  pthread_mutex_lock(&lock);
  state.started = false;
  for (uint32_t i = 0; i < pm__pool_count(); i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    if (atomic_load(&sampled->thread.state) != PM_THREAD_FREE) retire(sampled);
  }
  pthread_mutex_unlock(&lock);
}

void pm__sampler_exclude(int32_t tid) {
  pthread_mutex_lock(&lock);
  state.excluded = tid;
  pthread_mutex_unlock(&lock);
}

/* The caller's block; the lock is held. */
static struct pm_sampled *find_or_add_caller(void) {
  int32_t tid = pm__thread_id();
  struct pm_thread *thread = pm__thread_find(tid);
  if (thread != NULL && atomic_load(&thread->state) == PM_THREAD_DEAD) return NULL;
  struct pm_sampled *sampled = thread != NULL ? sampled_of(thread) : add_thread(tid);
  if (sampled == NULL) state.facts.threads_beyond_limit++;
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
  if (pthread_getspecific(exit_key) == NULL) pthread_setspecific(exit_key, &state);
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
  if (state.shadows_left == 0 || !pm__pool_add_shadow(sampled)) {
    state.facts.shadows_refused++;
    return NULL;
  }
  state.shadows_left--;
  return sampled->thread.shadow;
}

/*
 * Under one lock: without a GIL, sessions may change in the middle of an event, and
 * then a block found before is somebody else's.
 */
static bool find_caller(struct pm_shadow **shadow) {
  struct own_facts facts = read_own_facts();
  pthread_mutex_lock(&lock);
  struct pm_sampled *sampled = state.started ? find_or_add_caller() : NULL;
  if (sampled != NULL) complete_caller(sampled, &facts);
  if (sampled != NULL && shadow != NULL) *shadow = shadow_of(sampled);
  pthread_mutex_unlock(&lock);
  return sampled != NULL;
}

bool pm__sampler_register(void) { return find_caller(NULL); }

struct pm_shadow *pm__sampler_shadow(void) {
  struct pm_shadow *shadow = NULL;
  find_caller(&shadow);
  return shadow;
}

struct pm_shadow *pm__sampler_shadow_of(int32_t tid) {
  pthread_mutex_lock(&lock);
  struct pm_thread *thread = state.started ? pm__thread_find(tid) : NULL;
  bool live = thread != NULL && atomic_load(&thread->state) == PM_THREAD_LIVE;
  struct pm_shadow *shadow = live ? shadow_of(sampled_of(thread)) : NULL;
  pthread_mutex_unlock(&lock);
  return shadow;
}

void pm__sampler_name(int32_t tid, const char *name) {
  pthread_mutex_lock(&lock);
  struct pm_thread *thread = state.started ? pm__thread_find(tid) : NULL;
  if (thread != NULL) {
    struct pm_sampled *sampled = sampled_of(thread);
    snprintf(sampled->name, sizeof sampled->name, "%s", name);
    atomic_store(&sampled->name_source, PM_NAME_PYTHON);
  }
  pthread_mutex_unlock(&lock);
}

/* Looks up the stack that a handler met and did not know. */
static void learn_stack(struct pm_thread *thread) {
  uintptr_t sp = atomic_exchange(&thread->unknown_sp, 0);
  uintptr_t lo, hi;
  if (sp == 0 || !pm__stack_of_mapping(sp, &lo, &hi)) return;
  atomic_store(&thread->stack_lo, 0);
  atomic_store(&thread->stack_hi, hi);
  atomic_store(&thread->stack_lo, lo);
}

/* Reads the CPU clock of a thread that is there; a reused tid shows as a clock gone back. */
static void update_thread(struct pm_sampled *sampled) {
  uint64_t cpu;
  int32_t tid = atomic_load(&sampled->thread.tid);
  if (!pm__clock_thread(tid, &cpu)) return; /* it has just ended */
  bool reused = cpu < atomic_load(&sampled->cpu_now);
  if (atomic_load(&sampled->thread.state) == PM_THREAD_LIVE && !reused) {
    atomic_store(&sampled->cpu_now, cpu);
    learn_stack(&sampled->thread);
    outgrow_youth(sampled, cpu);
  } else if (reused) {
    end_thread(sampled);
    pm__thread_remove(&sampled->thread);
    sampled->gone = true;
    add_thread(tid);
    return;
  }
  sampled->seen = true;
}

static void note_task(int32_t tid) {
  if (tid == state.excluded) return;
  struct pm_thread *thread = pm__thread_find(tid);
  if (thread != NULL) {
    update_thread(sampled_of(thread));
    return;
  }
  struct pm_sampled *sampled = add_thread(tid);
  if (sampled != NULL) sampled->seen = true;
}

/* The list may have been cut short (see note_tasks): a thread is gone when its clock is. */
static void forget_unseen(void) {
  for (uint32_t i = 0; i < pm__pool_count(); i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    if (atomic_load(&sampled->thread.state) == PM_THREAD_FREE || sampled->gone) continue;
    if (!sampled->seen) update_thread(sampled);
    if (sampled->seen) continue;
    end_thread(sampled);
    sampled->gone = true;
  }
}

/*
 * The kernel ends the list early when the thread it has come to ends just then: those
 * behind it are not listed. False then: the folder's link count tells how many there are.
 */
static bool note_tasks(DIR *tasks) {
  struct stat folder;
  struct dirent *entry;
  nlink_t listed = 2;
  bool counted = fstat(dirfd(tasks), &folder) == 0;
  while ((entry = readdir(tasks)) != NULL) {
    int32_t tid = (int32_t)strtol(entry->d_name, NULL, 10);
    if (tid <= 0) continue;
    note_task(tid);
    listed++;
  }
  return !counted || listed >= folder.st_nlink;
}

/* A thread missed at the start would later be taken for a new one, with all CPU it ever used. */
static void scan_tasks(DIR *tasks) {
  for (uint32_t i = 0; i < pm__pool_count(); i++) pm__pool_block(i)->seen = false;
  for (int i = 1; !note_tasks(tasks) && state.at_start && i < START_TRIES; i++) rewinddir(tasks);
  forget_unseen();
}

void pm__sampler_scan(void) {
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return;
  pthread_mutex_lock(&lock);
  if (state.started) scan_tasks(tasks);
  pthread_mutex_unlock(&lock);
  closedir(tasks);
}

/* A thread that has said itself that it ends need not wait for the next scan. */
bool pm__sampler_is_gone(struct pm_sampled *sampled) {
  uint64_t cpu;
  return sampled->gone || (atomic_load(&sampled->thread.state) == PM_THREAD_DEAD &&
                           !pm__clock_thread(atomic_load(&sampled->thread.tid), &cpu));
}

void pm__sampler_each(void (*visit)(void *context, struct pm_sampled *sampled), void *context) {
  pthread_mutex_lock(&lock);
  uint32_t count = pm__pool_count();
  pthread_mutex_unlock(&lock);
  for (uint32_t i = 0; i < count; i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    if (atomic_load(&sampled->thread.state) != PM_THREAD_FREE) visit(context, sampled);
  }
}

static bool read_comm(int32_t tid, char *name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  bool read = fgets(name, PM_THREAD_NAME_BYTES, file) != NULL;
  fclose(file);
  if (read) name[strcspn(name, "\n")] = '\0';
  return read && name[0] != '\0';
}

void pm__sampler_copy_name(struct pm_sampled *sampled, char *name) {
  char comm[PM_THREAD_NAME_BYTES];
  int32_t tid = atomic_load(&sampled->thread.tid);
  bool wanted = atomic_load(&sampled->name_source) != PM_NAME_PYTHON;
  bool read = wanted && read_comm(tid, comm);
  pthread_mutex_lock(&lock);
  if (read && atomic_load(&sampled->name_source) != PM_NAME_PYTHON) {
    memcpy(sampled->name, comm, sizeof comm);
    atomic_store(&sampled->name_source, PM_NAME_COMM);
  }
  if (sampled->name[0] == '\0') snprintf(sampled->name, sizeof sampled->name, "tid-%d", tid);
  memcpy(name, sampled->name, PM_THREAD_NAME_BYTES);
  pthread_mutex_unlock(&lock);
}

/* Has the thread blocked our signal? From the hexadecimal mask in its status file. */
static bool blocks_signal(int32_t tid) {
  char path[64], line[128];
  unsigned long long mask = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
  FILE *status = fopen(path, "re");
  if (status == NULL) return false;
  while (fgets(line, sizeof line, status) != NULL) {
    if (sscanf(line, "SigBlk: %llx", &mask) == 1) break;
  }
  fclose(status);
  return (mask >> (pm__install_signal() - 1) & 1) != 0;
}

const char *pm__sampler_reason(struct pm_sampled *sampled) {
  static const uint64_t silent_ns =
      100000000u; /* CPU after which a sample was due at any rate > 10 */
  if (sampled->reason != NULL) return sampled->reason;
  uint64_t used = atomic_load(&sampled->cpu_now) - sampled->cpu_base;
  if (atomic_load(&sampled->thread.signals) > 0 || used < silent_ns) return NULL;
  if (!blocks_signal(atomic_load(&sampled->thread.tid))) return NULL;
  return sampled->reason = "the thread blocks the sampling signal";
}

bool pm__sampler_tables_in_use(const struct pm_tables *tables) {
  for (uint32_t i = 0; i < pm__pool_count(); i++) {
    if (atomic_load(&pm__pool_block(i)->thread.tables) == tables) return true;
  }
  return false;
}

struct pm_sampler_facts pm__sampler_facts(void) {
  pthread_mutex_lock(&lock);
  struct pm_sampler_facts facts = state.facts;
  for (int i = 0; i < PM_LOST_KINDS; i++) {
    facts.lost[i] = pm__signal_state.lost[i] - state.lost_before[i];
  }
  pthread_mutex_unlock(&lock);
  return facts;
}

void pm__sampler_forked(void) {
  lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  atomic_store(&pm__signal_state.active, false);
  state.started = state.armed = false;
  pm__threads_forked();
  pm__pool_forked();
  pm__timer_forked();
}
