/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's frames on the native stack, by the roles that calibration learned. */
#include "python/marks.h"

#include "python/stack.h"
#include "python/state.h"

static bool is_interpreter(uint64_t return_address) {
  uintptr_t start = 0;
  return pm__python_session.hooks.function_at((uintptr_t)return_address - 1, &start) &&
         pm__python_role(start) == PM_ROLE_INTERPRETER;
}

/* Their CFAs, leaf first; 0 when the walk did not see the whole stack. */
static uint32_t interpreters(uint64_t cfas[PM_NATIVE_FRAMES]) {
  uint64_t pc[PM_NATIVE_FRAMES], cfa[PM_NATIVE_FRAMES];
  struct pm_walk walk = {.pc = pc, .cfa = cfa, .capacity = PM_NATIVE_FRAMES};
  pm__python_session.hooks.walk_here(&walk);
  if (walk.skipped > 0 || !(walk.flags & PM_WALK_ROOT)) return 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < walk.count; i++) {
    if (cfa[i] != 0 && is_interpreter(pc[i])) cfas[count++] = cfa[i];
  }
  return count;
}

static uint32_t unmarked_at_root(const struct pm_shadow *shadow, uint32_t depth) {
  uint32_t count = 0;
  while (count < depth && shadow->frames[count].mark == 0) count++;
  return count;
}

/*
 * `inner` runs the first marked frame (0: there is none), `outer` interpreter
 * frames lie outside it. Each of those runs at least one of the unmarked.
 */
static bool is_settled(uint32_t unmarked, uint32_t outer, uint64_t inner) {
  return outer == unmarked || outer == (inner == 0 ? 1 : 0);
}

void pm__marks_complete(struct pm_shadow *shadow) {
  const struct pm_python_hooks *hooks = &pm__python_session.hooks;
  uint32_t depth = pm__stack_depth(shadow);
  uint32_t unmarked = depth > PM_SHADOW_ROOT ? 0 : unmarked_at_root(shadow, depth);
  if (unmarked == 0 || hooks->walk_here == NULL || hooks->function_at == NULL) return;
  uint64_t inner = unmarked < depth ? shadow->frames[unmarked].mark : 0;
  uint64_t cfas[PM_NATIVE_FRAMES];
  uint32_t count = interpreters(cfas), first = 0;
  while (first < count && cfas[first] <= inner) first++;
  if (count == 0 || !is_settled(unmarked, count - first, inner)) return;
  bool alone = count - first != unmarked;
  uint64_t only = inner == 0 ? cfas[first] : inner;
  pm__stack_rewrite_begin(shadow);
  for (uint32_t d = 0; d < unmarked; d++) {
    shadow->frames[d].mark = alone ? only : cfas[count - 1 - d];
  }
  pm__stack_rewrite_end(shadow);
}
