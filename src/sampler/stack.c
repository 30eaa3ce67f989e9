/* SPDX-License-Identifier: Apache-2.0 */
/* Where a thread's stack lies: from the thread's own record, or from the process's map. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sampler/internal.h"

/* glibc's loader keeps the first stack pointer of the process here. */
extern void *__libc_stack_end __attribute__((weak));

/*
 * The main thread's stack grows downwards on demand: everything between a stack
 * pointer and the root end is mapped, whatever the limit says.
 */
static bool main_stack(uintptr_t *lo, uintptr_t *hi) {
  if (&__libc_stack_end == NULL) return false;
  struct rlimit limit;
  uintptr_t room = (uintptr_t)1 << 30;
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < room) room = limit.rlim_cur;
  *hi = (uintptr_t)__libc_stack_end;
  *lo = *hi > room ? *hi - room : 1;
  return true;
}

bool pm__stack_of_caller(uintptr_t *lo, uintptr_t *hi) {
  if (pm__thread_id() == (int32_t)getpid()) return main_stack(lo, hi);
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  void *address = NULL;
  size_t size = 0;
  bool known = pthread_attr_getstack(&attributes, &address, &size) == 0 && size > 0;
  pthread_attr_destroy(&attributes);
  *lo = (uintptr_t)address;
  *hi = *lo + size;
  return known;
}

bool pm__stack_of_mapping(uintptr_t sp, uintptr_t *lo, uintptr_t *hi) {
  FILE *maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return false;
  char line[512];
  bool found = false;
  while (!found && fgets(line, sizeof line, maps) != NULL) {
    uintptr_t start, end;
    char access[5];
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end, access) != 3) continue;
    if (sp < start || sp >= end || access[0] != 'r') continue;
    *lo = start;
    *hi = end;
    found = true;
  }
  fclose(maps);
  return found;
}
