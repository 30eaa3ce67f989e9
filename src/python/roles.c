/* SPDX-License-Identifier: Apache-2.0 */
/* A small list: the interpreter is one function, two when split, some dozens with tail calls. */
#include "python/roles.h"

enum { ROLES_MAX = 128 };

/*
 * Owner:    calibration.
 * Readers:  the collector.
 * Ordering: an entry is written before `count` is raised, with release.
 */
static struct {
  _Atomic uint32_t count;
  struct {
    _Atomic uintptr_t start;
    _Atomic uint32_t role;
  } entries[ROLES_MAX];
} roles;

static uint32_t find(uintptr_t start) {
  uint32_t count = atomic_load_explicit(&roles.count, memory_order_acquire);
  uint32_t i = 0;
  while (i < count && atomic_load_explicit(&roles.entries[i].start, memory_order_relaxed) != start)
    i++;
  return i;
}

void pm__roles_add(uintptr_t start, enum pm_native_role role) {
  uint32_t at = find(start);
  if (at == ROLES_MAX) return;
  if (at < atomic_load_explicit(&roles.count, memory_order_relaxed)) {
    if (role == PM_ROLE_INTERPRETER)
      atomic_store_explicit(&roles.entries[at].role, role, memory_order_relaxed);
    return;
  }
  atomic_store_explicit(&roles.entries[at].start, start, memory_order_relaxed);
  atomic_store_explicit(&roles.entries[at].role, role, memory_order_relaxed);
  atomic_store_explicit(&roles.count, at + 1, memory_order_release);
}

void pm__roles_clear(void) { atomic_store_explicit(&roles.count, 0, memory_order_release); }

enum pm_native_role pm__python_role(uintptr_t start) {
  uint32_t at = find(start);
  if (at >= atomic_load_explicit(&roles.count, memory_order_acquire)) return PM_ROLE_OTHER;
  return atomic_load_explicit(&roles.entries[at].role, memory_order_relaxed);
}
