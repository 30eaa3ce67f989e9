/* SPDX-License-Identifier: Apache-2.0 */
/* Birth and death of the per-thread blocks, and the counters they hold together. */
#include "python/local.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

__thread struct pm_python_thread *pm__local_self PM_TLS_MODEL;

/*
 * Owner:    `lock`.
 * Readers:  under `lock`. Held for pure C only.
 * Ordering: none beyond the lock.
 */
static struct {
  pthread_mutex_t lock;
  struct pm_python_thread *first;
  struct pm_cell_chunk *dead[PM_CELL_CHUNKS]; /* counts of threads that have ended */
  uint64_t dead_met, dead_missed;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static uint64_t load(const _Atomic uint64_t *counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

static struct pm_cell_chunk *chunk_of(const struct pm_python_thread *thread, uint32_t index) {
  return atomic_load_explicit(&thread->chunks[index], memory_order_acquire);
}

static void unlink_thread(struct pm_python_thread *thread) {
  if (thread->previous != NULL) thread->previous->next = thread->next;
  if (all.first == thread) all.first = thread->next;
  if (thread->next != NULL) thread->next->previous = thread->previous;
}

static void fold_chunk(struct pm_cell_chunk **sum, struct pm_cell_chunk *chunk) {
  if (chunk == NULL) return;
  if (*sum == NULL) { /* the first to die leaves its chunk as the sum */
    *sum = chunk;
    return;
  }
  for (uint32_t i = 0; i < PM_CELL_CHUNK; i++) {
    uint64_t count = load(&(*sum)->cells[i]) + load(&chunk->cells[i]);
    atomic_store_explicit(&(*sum)->cells[i], count, memory_order_relaxed);
  }
  free(chunk);
}

static void free_thread(struct pm_python_thread *thread) {
  pm__entries_free(&thread->entries);
  free(thread);
}

/* pthread destructor: the counts stay, the block goes. */
static void retire(void *block) {
  struct pm_python_thread *thread = block;
  pm__local_self = NULL;
  pthread_mutex_lock(&all.lock);
  unlink_thread(thread);
  all.dead_met += load(&thread->met);
  all.dead_missed += load(&thread->missed);
  for (uint32_t i = 0; i < PM_CELL_CHUNKS; i++) fold_chunk(&all.dead[i], chunk_of(thread, i));
  pthread_mutex_unlock(&all.lock);
  free_thread(thread);
}

static void make_key(void) { key_made = pthread_key_create(&key, retire) == 0; }

static void link_thread(struct pm_python_thread *thread) {
  pthread_mutex_lock(&all.lock);
  thread->next = all.first;
  if (all.first != NULL) all.first->previous = thread;
  all.first = thread;
  pthread_mutex_unlock(&all.lock);
}

struct pm_python_thread *pm__local_own(void) {
  if (PM_LIKELY(pm__local_self != NULL)) return pm__local_self;
  pthread_once(&key_once, make_key);
  if (!key_made) return NULL;
  struct pm_python_thread *thread = calloc(1, sizeof *thread);
  if (thread == NULL) return NULL;
  if (!pm__entries_make(&thread->entries) || pthread_setspecific(key, thread) != 0) {
    free_thread(thread);
    return NULL;
  }
  thread->hot = PM_HOT_NEVER;
  thread->tid = pm__thread_id();
  link_thread(thread);
  pm__local_self = thread;
  return thread;
}

_Atomic uint64_t *pm__local_cell(struct pm_python_thread *thread, uint32_t id) {
  static _Atomic uint64_t spill; /* without memory for any chunk: counted nowhere */
  struct pm_cell_chunk *chunk = chunk_of(thread, id / PM_CELL_CHUNK);
  if (chunk == NULL) {
    chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL) return id == 0 ? &spill : pm__local_cell(thread, 0);
    atomic_store_explicit(&thread->chunks[id / PM_CELL_CHUNK], chunk, memory_order_release);
  }
  return &chunk->cells[id % PM_CELL_CHUNK];
}

static uint64_t cell_value(const struct pm_cell_chunk *chunk, uint32_t id) {
  return chunk == NULL ? 0 : load(&chunk->cells[id % PM_CELL_CHUNK]);
}

uint64_t pm__counters_calls(uint32_t id) {
  uint32_t index = id / PM_CELL_CHUNK;
  if (index >= PM_CELL_CHUNKS) return 0;
  pthread_mutex_lock(&all.lock);
  uint64_t sum = cell_value(all.dead[index], id);
  for (struct pm_python_thread *thread = all.first; thread != NULL; thread = thread->next) {
    sum += cell_value(chunk_of(thread, index), id);
  }
  pthread_mutex_unlock(&all.lock);
  return sum;
}

void pm__counters_lookups(uint64_t *met, uint64_t *missed) {
  pthread_mutex_lock(&all.lock);
  *met = all.dead_met;
  *missed = all.dead_missed;
  for (struct pm_python_thread *thread = all.first; thread != NULL; thread = thread->next) {
    *met += load(&thread->met);
    *missed += load(&thread->missed);
  }
  pthread_mutex_unlock(&all.lock);
}

/* Zeroed in place: on a free-threaded build a late callback may still hold a cell. */
static void clear_thread(struct pm_python_thread *thread) {
  atomic_store_explicit(&thread->met, 0, memory_order_relaxed);
  atomic_store_explicit(&thread->missed, 0, memory_order_relaxed);
  for (uint32_t i = 0; i < PM_CELL_CHUNKS; i++) {
    struct pm_cell_chunk *chunk = chunk_of(thread, i);
    for (uint32_t j = 0; chunk != NULL && j < PM_CELL_CHUNK; j++) {
      atomic_store_explicit(&chunk->cells[j], 0, memory_order_relaxed);
    }
  }
}

void pm__counters_reset(void) {
  pthread_mutex_lock(&all.lock);
  all.dead_met = all.dead_missed = 0;
  for (uint32_t i = 0; i < PM_CELL_CHUNKS; i++) {
    free(all.dead[i]);
    all.dead[i] = NULL;
  }
  for (struct pm_python_thread *thread = all.first; thread != NULL; thread = thread->next) {
    clear_thread(thread);
  }
  pthread_mutex_unlock(&all.lock);
}

void pm__local_forked(void) {
  /* Another thread may have held the lock, with the list half linked: all is begun anew. */
  all.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  for (uint32_t i = 0; i < PM_CELL_CHUNKS; i++) all.dead[i] = NULL;
  struct pm_python_thread *self = pm__local_self;
  all.first = self;
  if (self == NULL) return;
  self->previous = self->next = NULL;
  self->tid = pm__thread_id();
}
