/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of sampled threads: one reserved range of address space, filled
 * from the bottom, never unmapped, so that a late signal always finds a block.
 * Callers hold the registry's lock.
 */
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "sampler/internal.h"
#include "signal/handler.h"

static struct pm_sampled *blocks;
static _Atomic uint32_t used; /* blocks taken at least once; read without the lock too */
static uint32_t free_list[PM_THREADS_MAX];
static uint32_t free_count;

static void *map_bytes(size_t size) {
  void *bytes =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return bytes == MAP_FAILED ? NULL : bytes;
}

bool pm__pool_reserve(void) {
  if (blocks != NULL) return true;
  blocks = map_bytes(sizeof(struct pm_sampled) * PM_THREADS_MAX);
  if (blocks == NULL) return false;
  pm__signal_state.block_size = sizeof(struct pm_sampled);
  pm__signal_state.blocks_lo = (uintptr_t)blocks;
  pm__signal_state.blocks_hi = (uintptr_t)(blocks + PM_THREADS_MAX);
  return true;
}

static bool has_buffers(struct pm_sampled *sampled) {
  struct pm_thread *thread = &sampled->thread;
  if (thread->ring.bytes == NULL) thread->ring.bytes = map_bytes(PM_RING_BYTES);
  if (thread->cache == NULL) thread->cache = map_bytes(sizeof(struct pm_pc_cache));
  return thread->ring.bytes != NULL && thread->cache != NULL;
}

/*
 * Clears a block for its next thread; the mapped buffers stay with it. The shadow
 * too is kept mapped: the thread that had it may be in a callback right now. And
 * a late handler may be inside, to ask whose block it is: it stays counted.
 */
static void clear(struct pm_sampled *sampled) {
  struct pm_thread *thread = &sampled->thread;
  uint8_t *ring = thread->ring.bytes;
  struct pm_pc_cache *cache = thread->cache;
  struct pm_shadow *spare = thread->shadow != NULL ? thread->shadow : sampled->spare_shadow;
  memset(&thread->tid, 0, sizeof *sampled - offsetof(struct pm_thread, tid));
  thread->ring.bytes = ring;
  thread->cache = cache;
  sampled->spare_shadow = spare;
}

struct pm_sampled *pm__pool_take(void) {
  if (free_count == 0 && used == PM_THREADS_MAX) return NULL;
  struct pm_sampled *sampled =
      &blocks[free_count > 0 ? free_list[--free_count] : atomic_fetch_add(&used, 1)];
  if (has_buffers(sampled)) return sampled;
  pm__pool_give(sampled);
  return NULL;
}

void pm__pool_give(struct pm_sampled *sampled) {
  clear(sampled);
  free_list[free_count++] = (uint32_t)(sampled - blocks);
}

bool pm__pool_add_shadow(struct pm_sampled *sampled) {
  struct pm_shadow *shadow = sampled->spare_shadow;
  if (shadow == NULL) shadow = map_bytes(sizeof *shadow);
  if (shadow == NULL) return false;
  memset(shadow, 0, sizeof *shadow);
  shadow->tail_low = PM_SHADOW_ROOT;
  sampled->spare_shadow = NULL;
  atomic_signal_fence(memory_order_release);
  sampled->thread.shadow = shadow;
  return true;
}

struct pm_sampled *pm__pool_block(uint32_t index) { return &blocks[index]; }

uint32_t pm__pool_count(void) { return atomic_load(&used); }

void pm__pool_forked(void) {
  for (uint32_t i = 0; i < used; i++) {
    clear(&blocks[i]);
    atomic_store(&blocks[i].thread.in_handler, 0);
  }
  free_count = 0;
  used = 0;
}
