/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a thread: its name, and why it was not sampled. */
#include <stdio.h>
#include <string.h>

#include "sampler/internal.h"
#include "sampler/registry.h"
#include "signal/handler.h"

void pm__sampler_name(int32_t tid, const char *name) {
  pthread_mutex_lock(&pm__registry_lock);
  struct pm_thread *thread = pm__registry.started ? pm__thread_find(tid) : NULL;
  if (thread != NULL) {
    struct pm_sampled *sampled = pm__sampled_of(thread);
    snprintf(sampled->name, sizeof sampled->name, "%s", name);
    atomic_store(&sampled->name_source, PM_NAME_PYTHON);
  }
  pthread_mutex_unlock(&pm__registry_lock);
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
  pthread_mutex_lock(&pm__registry_lock);
  if (read && atomic_load(&sampled->name_source) != PM_NAME_PYTHON) {
    memcpy(sampled->name, comm, sizeof comm);
    atomic_store(&sampled->name_source, PM_NAME_COMM);
  }
  if (sampled->name[0] == '\0') snprintf(sampled->name, sizeof sampled->name, "tid-%d", tid);
  memcpy(name, sampled->name, PM_THREAD_NAME_BYTES);
  pthread_mutex_unlock(&pm__registry_lock);
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
  return (mask >> (pm__sampler_signal() - 1) & 1) != 0;
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
