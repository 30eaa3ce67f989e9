/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of threads: who is found, whose block it is when sessions change, and
 * many threads at it at once. No timer runs here; signals are made up.
 */
#include "sampler/sampler.h"

#include <pthread.h>
#include <pyrometer.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

#include "check.h"
#include "sampler/internal.h"
#include "signal/handler.h"

static void start(uint32_t python_threads) {
  struct pm_sampler_options options = {.rate_hz = 100, .python_threads = python_threads};
  CHECK_EQ_INT(pm__sampler_start(&options), PYROMETER_OK);
}

static struct pm_sampled *block_of(int32_t tid) {
  return (struct pm_sampled *)(void *)pm__thread_find(tid);
}

/* A thread that does what it is told and then waits. */
struct puppet {
  pthread_t thread;
  _Atomic int32_t tid;
  sem_t go, ready;
  bool registers;
  struct pm_shadow *shadow;
};

static void *puppet_main(void *argument) {
  struct puppet *puppet = argument;
  if (puppet->registers) puppet->shadow = pm__sampler_shadow();
  atomic_store(&puppet->tid, pm__thread_id());
  sem_post(&puppet->ready);
  sem_wait(&puppet->go);
  return NULL;
}

static void begin(struct puppet *puppet, bool registers) {
  *puppet = (struct puppet){.registers = registers};
  sem_init(&puppet->go, 0, 0);
  sem_init(&puppet->ready, 0, 0);
  CHECK(pthread_create(&puppet->thread, NULL, puppet_main, puppet) == 0);
  sem_wait(&puppet->ready);
}

static void end(struct puppet *puppet) {
  sem_post(&puppet->go);
  pthread_join(puppet->thread, NULL);
}

static void retire_gone(void *context, struct pm_sampled *sampled) {
  if (!pm__sampler_is_gone(sampled)) return;
  (*(int *)context)++;
  pm__sampler_retire(sampled);
}

/* pthread_join returns a moment before the kernel lets go of the thread. */
static int retire_until(int wanted) {
  int retired = 0;
  for (int i = 0; i < 2000 && retired < wanted; i++) {
    pm__sampler_scan();
    pm__sampler_each(retire_gone, &retired);
    usleep(500);
  }
  return retired;
}

static void test_found_and_ended(void) {
  struct puppet silent, speaking;
  begin(&silent, false);
  start(8);
  CHECK(block_of(pm__thread_id()) != NULL);
  CHECK(block_of(silent.tid) != NULL);
  begin(&speaking, true);
  CHECK(speaking.shadow != NULL);
  CHECK(block_of(speaking.tid)->thread.shadow == speaking.shadow);
  CHECK_EQ_INT(block_of(speaking.tid)->cpu_base, 0); /* its whole life is the session's */
  end(&speaking);
  CHECK_EQ_INT(atomic_load(&block_of(speaking.tid)->thread.state), PM_THREAD_DEAD);
  CHECK_EQ_INT(retire_until(1), 1);
  CHECK(block_of(speaking.tid) == NULL);
  CHECK(block_of(silent.tid) != NULL);
  end(&silent);
  CHECK_EQ_INT(retire_until(1), 1);
  pm__sampler_reset();
}

static void test_shadows_are_limited(void) {
  struct puppet first, second;
  start(1);
  begin(&first, true);
  begin(&second, true);
  CHECK(first.shadow != NULL);
  CHECK(second.shadow == NULL);
  CHECK_EQ_INT(pm__sampler_facts().shadows_refused, 1);
  end(&first);
  end(&second);
  CHECK_EQ_INT(retire_until(2), 2);
  pm__sampler_reset();
}

/* A thread that was found in one session says in the next that it ends: its block is another one. */
static void test_end_after_the_session(void) {
  struct puppet old, others[4];
  start(8);
  begin(&old, true);
  pm__sampler_reset();
  for (int i = 0; i < 4; i++) begin(&others[i], false);
  start(8);
  CHECK(block_of(old.tid) != NULL);
  end(&old);
  CHECK_EQ_INT(retire_until(1), 1);
  for (int i = 0; i < 4; i++) {
    CHECK_EQ_INT(atomic_load(&block_of(others[i].tid)->thread.state), PM_THREAD_LIVE);
    end(&others[i]);
  }
  CHECK_EQ_INT(retire_until(4), 4);
  pm__sampler_reset();
}

static void signal_for(struct pm_sampled *sampled) {
  siginfo_t info = {.si_code = SI_TIMER};
  static ucontext_t here;
  getcontext(&here);
  info.si_value.sival_ptr = sampled;
  pm__handler(SIGPROF, &info, &here);
}

/* A signal that was under way when its block passed to another thread counts, but for nobody. */
static void test_late_signals(void) {
  struct puppet other;
  start(8);
  begin(&other, true);
  struct pm_sampled *own = block_of(pm__thread_id()), *foreign = block_of(other.tid);
  signal_for(own);
  CHECK_EQ_INT(own->thread.signals, 1);
  CHECK_EQ_INT(own->thread.lost[PM_LOST_INACTIVE], 1);
  signal_for(foreign);
  CHECK_EQ_INT(foreign->thread.signals, 0);
  CHECK_EQ_INT(atomic_load(&foreign->thread.in_handler), 0);
  CHECK_EQ_INT(pm__sampler_facts().lost[PM_LOST_INACTIVE], 1);
  end(&other);
  CHECK_EQ_INT(retire_until(1), 1);
  pm__sampler_reset();
  start(8);
  CHECK_EQ_INT(pm__sampler_facts().lost[PM_LOST_INACTIVE], 0);
  pm__sampler_reset();
}

/* As long as a handler is inside, the block is not given to the next thread. */
static void test_block_with_a_handler_is_kept(void) {
  start(8);
  struct pm_sampled *own = block_of(pm__thread_id());
  atomic_store(&own->thread.in_handler, 1);
  pm__sampler_reset();
  start(8);
  CHECK(block_of(pm__thread_id()) != NULL);
  CHECK(block_of(pm__thread_id()) != own);
  atomic_store(&own->thread.in_handler, 0);
  pm__sampler_reset();
}

enum { STORM_THREADS = 8, STORM_ROUNDS = 60 };

static _Atomic bool storm_over;

static void *short_life(void *argument) {
  struct pm_shadow *shadow = pm__sampler_shadow();
  if (shadow != NULL) atomic_fetch_add(&shadow->events[0], 1);
  pm__sampler_name(pm__thread_id(), "short");
  return argument;
}

static void *make_short_lives(void *argument) {
  for (int i = 0; i < STORM_ROUNDS; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, short_life, NULL) == 0) pthread_join(thread, NULL);
  }
  return argument;
}

static void look(void *context, struct pm_sampled *sampled) {
  char name[PM_THREAD_NAME_BYTES];
  (void)context;
  pm__sampler_copy_name(sampled, name);
  pm__sampler_reason(sampled);
  struct pm_shadow *shadow = sampled->thread.shadow;
  if (shadow != NULL) (void)atomic_load(&shadow->events[0]);
  if (pm__sampler_is_gone(sampled)) pm__sampler_retire(sampled);
}

static void *collect(void *argument) {
  while (!atomic_load(&storm_over)) {
    pm__sampler_scan();
    pm__sampler_each(look, NULL);
  }
  return argument;
}

/* The unwinder asks this under a lock of its own. */
static void *ask(void *argument) {
  while (!atomic_load(&storm_over)) (void)pm__sampler_tables_in_use(NULL);
  return argument;
}

/* One collector as in a session, threads that come and go, two who ask from outside. */
static void test_storm(void) {
  pthread_t collector, asker, makers[STORM_THREADS];
  start(256);
  atomic_store(&storm_over, false);
  pthread_create(&collector, NULL, collect, NULL);
  pthread_create(&asker, NULL, ask, NULL);
  for (int i = 0; i < STORM_THREADS; i++) {
    pthread_create(&makers[i], NULL, make_short_lives, NULL);
  }
  for (int i = 0; i < STORM_THREADS; i++) {
    (void)pm__sampler_facts();
    pthread_join(makers[i], NULL);
  }
  atomic_store(&storm_over, true);
  pthread_join(collector, NULL);
  pthread_join(asker, NULL);
  CHECK_EQ_INT(pm__sampler_facts().threads_beyond_limit, 0);
  /* How many shadows were refused depends on when the collector got a processor. */
  pm__sampler_reset();
  uint32_t blocks = pm__pool_count();
  start(256);
  CHECK_EQ_INT(pm__pool_count(), blocks); /* all came back */
  pm__sampler_reset();
}

static void test_fork(void) {
  start(8);
  pm__sampler_forked(); /* what a child does */
  CHECK(block_of(pm__thread_id()) == NULL);
  CHECK_EQ_INT(pm__pool_count(), 0);
  start(8);
  CHECK(block_of(pm__thread_id()) != NULL);
  pm__sampler_reset();
}

int main(void) {
  test_found_and_ended();
  test_shadows_are_limited();
  test_end_after_the_session();
  test_late_signals();
  test_block_with_a_handler_is_kept();
  test_storm();
  test_fork();
  return check_report();
}
