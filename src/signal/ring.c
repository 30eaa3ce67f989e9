/* SPDX-License-Identifier: Apache-2.0 */
/* The sample ring; see ring.h for who may call what. */
#include "signal/ring.h"

static uint64_t load_relaxed(_Atomic uint64_t *value) {
  return atomic_load_explicit(value, memory_order_relaxed);
}

/* Fills the buffer's end with a pad record, so that the next record is contiguous. */
static void pad_to_end(struct pm_ring *ring, uint64_t head, uint32_t bytes) {
  struct pm_record *pad = (struct pm_record *)(void *)(ring->bytes + head % PM_RING_BYTES);
  pad->size = bytes;
  pad->flags = PM_RECORD_PAD;
  atomic_store_explicit(&ring->head, head + bytes, memory_order_release);
}

struct pm_record *pm__ring_reserve(struct pm_ring *ring) {
  uint64_t head = load_relaxed(&ring->head);
  uint64_t used = head - atomic_load_explicit(&ring->tail, memory_order_acquire);
  uint64_t to_end = PM_RING_BYTES - head % PM_RING_BYTES;
  uint64_t need = to_end < PM_RECORD_MAX ? to_end + PM_RECORD_MAX : PM_RECORD_MAX;
  if (ring->bytes == NULL || used + need > PM_RING_BYTES) return NULL;
  if (to_end < PM_RECORD_MAX) {
    pad_to_end(ring, head, (uint32_t)to_end);
    head += to_end;
  }
  return (struct pm_record *)(void *)(ring->bytes + head % PM_RING_BYTES);
}

void pm__ring_commit(struct pm_ring *ring, const struct pm_record *record) {
  atomic_store_explicit(&ring->head, load_relaxed(&ring->head) + record->size,
                        memory_order_release);
}

const struct pm_record *pm__ring_peek(struct pm_ring *ring) {
  for (;;) {
    uint64_t tail = load_relaxed(&ring->tail);
    if (tail == atomic_load_explicit(&ring->head, memory_order_acquire)) return NULL;
    const struct pm_record *record =
        (const struct pm_record *)(const void *)(ring->bytes + tail % PM_RING_BYTES);
    if (!(record->flags & PM_RECORD_PAD)) return record;
    pm__ring_pop(ring, record);
  }
}

void pm__ring_pop(struct pm_ring *ring, const struct pm_record *record) {
  atomic_store_explicit(&ring->tail, load_relaxed(&ring->tail) + record->size,
                        memory_order_release);
}
