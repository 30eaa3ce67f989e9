/* SPDX-License-Identifier: Apache-2.0 */
/* Threads by tid; see handler.h. */
#include "signal/handler.h"

enum { BUCKETS = 4096, CHAIN_MAX = 256 };

static _Atomic(struct pm_thread *) buckets[BUCKETS];

static _Atomic(struct pm_thread *) *bucket_of(int32_t tid) {
  return &buckets[((uint32_t)tid * 2654435761u) >> 20];
}

void pm__thread_insert(struct pm_thread *thread) {
  _Atomic(struct pm_thread *) *head = bucket_of(atomic_load(&thread->tid));
  atomic_store(&thread->next, atomic_load(head));
  atomic_store(head, thread);
}

void pm__thread_remove(struct pm_thread *thread) {
  _Atomic(struct pm_thread *) *link = bucket_of(atomic_load(&thread->tid));
  struct pm_thread *other;
  while ((other = atomic_load(link)) != NULL) {
    if (other == thread) {
      atomic_store(link, atomic_load(&thread->next));
      return;
    }
    link = &other->next;
  }
}

struct pm_thread *pm__thread_find(int32_t tid) {
  struct pm_thread *thread = atomic_load(bucket_of(tid));
  for (int i = 0; thread != NULL && i < CHAIN_MAX; i++) {
    if (atomic_load_explicit(&thread->tid, memory_order_relaxed) == tid) return thread;
    thread = atomic_load(&thread->next);
  }
  return NULL;
}

void pm__threads_forked(void) {
  for (int i = 0; i < BUCKETS; i++) atomic_store(&buckets[i], NULL);
}
