/* SPDX-License-Identifier: Apache-2.0 */
/* The handler's copy of the shadow stack. */
#include "signal/shadow.h"

_Atomic uint32_t pm__shadow_session;

/* Plain loops: the handler may call nothing, memcpy included. */
static uint32_t copy_frames(const struct pm_shadow *shadow, uint32_t depth,
                            struct pm_shadow_frame *out, uint32_t *split, uint32_t *skipped) {
  uint32_t root = depth < PM_SHADOW_ROOT ? depth : PM_SHADOW_ROOT;
  uint32_t count = 0;
  while (count < root) {
    out[count] = shadow->frames[count];
    count++;
  }
  *split = root;
  *skipped = 0;
  if (depth <= PM_SHADOW_ROOT) return count;
  /* A pop lowers `depth` before `tail_low`: between the two no deep frame is left. */
  uint32_t low = shadow->tail_low < depth ? shadow->tail_low : depth;
  if (depth - low > PM_SHADOW_TAIL) low = depth - PM_SHADOW_TAIL;
  *skipped = low - PM_SHADOW_ROOT;
  for (uint32_t d = low; d < depth; d++) {
    out[count++] = shadow->frames[PM_SHADOW_ROOT + d % PM_SHADOW_TAIL];
  }
  return count;
}

bool pm__shadow_copy(const struct pm_shadow *shadow, struct pm_shadow_frame *out, uint32_t *count,
                     uint32_t *split, uint32_t *skipped) {
  *count = *split = *skipped = 0;
  uint32_t sequence = atomic_load_explicit(&shadow->sequence, memory_order_acquire);
  if (sequence & 1u) return false;
  uint32_t session = atomic_load_explicit(&pm__shadow_session, memory_order_relaxed);
  uint32_t seeded = atomic_load_explicit(&shadow->seeded, memory_order_relaxed);
  if (session != 0 && seeded == session) {
    uint32_t depth = atomic_load_explicit(&shadow->depth, memory_order_acquire);
    *count = copy_frames(shadow, depth, out, split, skipped);
  }
  /* Only another thread's seeding (src/python/seed.c) can come in between. */
  atomic_thread_fence(memory_order_acquire);
  return atomic_load_explicit(&shadow->sequence, memory_order_relaxed) == sequence;
}
