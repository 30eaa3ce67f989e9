/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: they agree with each other, and a thread that has ended has none. */
#include <pthread.h>
#include <unistd.h>

#include "base/base.h"
#include "check.h"

static void *take_id(void *tid) {
  *(int32_t *)tid = pm__thread_id();
  return NULL;
}

static void test_wall_clocks(void) {
  uint64_t before = pm__clock_monotonic();
  CHECK(before > 0 && pm__clock_monotonic() >= before);
  CHECK(pm__clock_realtime() > UINT64_C(1700000000) * 1000000000);
}

static void test_cpu_clocks(void) {
  uint64_t before = pm__clock_thread_self(), mine = 0;
  CHECK(pm__clock_thread(pm__thread_id(), &mine));
  CHECK(mine >= before && mine <= pm__clock_thread_self());
  CHECK(pm__clock_process() >= mine);
}

static void test_no_such_thread(void) {
  uint64_t ns = 7;
  int32_t ended = 0;
  pthread_t thread;
  CHECK_EQ_INT(pm__thread_id(), getpid());
  CHECK(pthread_create(&thread, NULL, take_id, &ended) == 0);
  pthread_join(thread, NULL);
  CHECK(ended > 0 && ended != pm__thread_id());
  CHECK(!pm__clock_thread(ended, &ns));
  CHECK(!pm__clock_thread(getppid(), &ns)); /* a thread, but of another process */
  CHECK(!pm__clock_thread(0, &ns));
  CHECK(!pm__clock_thread(-1, &ns));
  CHECK_EQ_INT(ns, 7);
}

int main(void) {
  test_wall_clocks();
  test_cpu_clocks();
  test_no_such_thread();
  return check_report();
}
