/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of sample records between one thread's handler and the collector. */
#ifndef PM_SIGNAL_RING_H
#define PM_SIGNAL_RING_H

#include "base/base.h"
#include "signal/shadow.h"

/*
 * One sample. Behind the header come native_count pcs (leaf first), native_count
 * CFAs, and python_count shadow frames (root first).
 */
struct pm_record {
  uint32_t size; /* bytes with header, a multiple of 8 */
  uint32_t flags;
  uint64_t time;   /* CLOCK_MONOTONIC, ns */
  uint64_t weight; /* CPU of the thread since its last sample, ns */
  uint64_t cpu;    /* CPU clock of the thread at the sample, ns */
  uint16_t native_count;
  uint16_t native_split;
  uint16_t python_count;
  uint16_t python_split;
  uint32_t native_skipped;
  uint32_t python_skipped;
};

enum pm_record_flag {
  /* bits 0..7: pm_walk_flag */
  PM_RECORD_PAD = 1 << 8,           /* no sample: the rest of the buffer is unused */
  PM_RECORD_PYTHON = 1 << 9,        /* a Python stack was taken (may be empty) */
  PM_RECORD_PYTHON_DROPPED = 1 << 10, /* the shadow stack was being rewritten */
};

enum {
  PM_RECORD_MAX = sizeof(struct pm_record) + PM_NATIVE_FRAMES * 16 +
      PM_PYTHON_FRAMES * sizeof(struct pm_shadow_frame),
  PM_RING_BYTES = 1 << 17,
};

static inline const uint64_t *pm__record_pcs(const struct pm_record *r) {
  return (const uint64_t *)(const void *)(r + 1);
}
static inline const uint64_t *pm__record_cfas(const struct pm_record *r) {
  return pm__record_pcs(r) + r->native_count;
}
static inline const struct pm_shadow_frame *pm__record_frames(const struct pm_record *r) {
  return (const struct pm_shadow_frame *)(const void *)(pm__record_cfas(r) + r->native_count);
}

/*
 * Owner:    the handler writes at `head`, the collector reads at `tail`.
 * Readers:  the collector.
 * Ordering: release store of head and tail, acquire load on the other side. Both
 *           grow without end; the position is the value modulo PM_RING_BYTES.
 */
struct pm_ring {
  uint8_t *bytes; /* PM_RING_BYTES, mapped once */
  _Atomic uint64_t head;
  _Atomic uint64_t tail;
};

/* Room for the largest record, contiguous, or NULL when the ring is full. Handler side. */
struct pm_record *pm__ring_reserve(struct pm_ring *ring);
/* Publishes the reserved record, whose `size` is set. Handler side. */
void pm__ring_commit(struct pm_ring *ring, const struct pm_record *record);
/* The oldest record, or NULL. Collector side; valid until the next pm__ring_pop. */
const struct pm_record *pm__ring_peek(struct pm_ring *ring);
void pm__ring_pop(struct pm_ring *ring, const struct pm_record *record);

#endif /* PM_SIGNAL_RING_H */
