/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks and the caller's thread id. The signal handler calls them, so they do
 * nothing but a vDSO read or a system call. errno may change: the handler keeps it.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

static bool read_clock(clockid_t clock, uint64_t *ns) {
  struct timespec now;
  if (clock_gettime(clock, &now) != 0) return false;
  *ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  return true;
}

/* For clocks that every Linux has; 0 only where a sandbox forbids the call. */
static uint64_t read_known_clock(clockid_t clock) {
  uint64_t ns = 0;
  return read_clock(clock, &ns) ? ns : 0;
}

uint64_t pm__clock_monotonic(void) { return read_known_clock(CLOCK_MONOTONIC); }

uint64_t pm__clock_realtime(void) { return read_known_clock(CLOCK_REALTIME); }

uint64_t pm__clock_thread_self(void) { return read_known_clock(CLOCK_THREAD_CPUTIME_ID); }

uint64_t pm__clock_process(void) { return read_known_clock(CLOCK_PROCESS_CPUTIME_ID); }

/*
 * The kernel's numbering of CPU clocks (include/linux/posix-timers.h): the
 * complement of the id above three bits, of which 4 says "one thread" and 2
 * "scheduler time". Id 0 would be the caller, so it is refused.
 */
static clockid_t clock_of_thread(int32_t tid) { return (clockid_t)((~(uint32_t)tid << 3) | 6u); }

bool pm__clock_thread(int32_t tid, uint64_t *ns) {
  return tid > 0 && read_clock(clock_of_thread(tid), ns);
}

int32_t pm__thread_id(void) { return (int32_t)syscall(SYS_gettid); }
