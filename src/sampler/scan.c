/* SPDX-License-Identifier: Apache-2.0 */
/* Who is there: /proc/self/task, and the threads' CPU clocks. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "sampler/internal.h"
#include "sampler/registry.h"
#include "signal/handler.h"

enum { START_TRIES = 8 };

static void outgrow_youth(struct pm_sampled *sampled, uint64_t cpu) {
  static const uint64_t young_ns = 100000000u;
  if (!sampled->young || cpu < young_ns) return;
  sampled->young = false;
  pm__timer_set(sampled, pm__registry.period_ns, pm__timer_random(pm__registry.period_ns));
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
    pm__registry_end(sampled);
    pm__thread_remove(&sampled->thread);
    sampled->gone = true;
    pm__registry_add(tid);
    return;
  }
  sampled->seen = true;
}

static void note_task(int32_t tid) {
  for (int i = 0; i < PM_OWN_THREADS; i++) {
    if (tid == pm__registry.excluded[i]) return;
  }
  struct pm_thread *thread = pm__thread_find(tid);
  if (thread != NULL) {
    update_thread(pm__sampled_of(thread));
    return;
  }
  struct pm_sampled *sampled = pm__registry_add(tid);
  if (sampled != NULL) sampled->seen = true;
}

/* The list may have been cut short (see note_tasks): a thread is gone when its clock is. */
static void forget_unseen(void) {
  for (uint32_t i = 0; i < pm__pool_count(); i++) {
    struct pm_sampled *sampled = pm__pool_block(i);
    if (atomic_load(&sampled->thread.state) == PM_THREAD_FREE || sampled->gone) continue;
    if (!sampled->seen) update_thread(sampled);
    if (sampled->seen) continue;
    pm__registry_end(sampled);
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
  for (int i = 1; !note_tasks(tasks) && pm__registry.at_start && i < START_TRIES; i++)
    rewinddir(tasks);
  forget_unseen();
}

void pm__sampler_scan(void) {
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return;
  pthread_mutex_lock(&pm__registry_lock);
  if (pm__registry.started) scan_tasks(tasks);
  pthread_mutex_unlock(&pm__registry_lock);
  closedir(tasks);
}
