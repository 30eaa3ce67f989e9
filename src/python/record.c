/* SPDX-License-Identifier: Apache-2.0 */
#include "python/record.h"

#include "python/state.h"

/* Return addresses lie in the frames they lead out of, on x86-64 right below the CFA. */
static void find_slots(struct pm_event_record *record) {
  for (uint32_t i = 2; i < record->count; i++) {
    uint64_t low = record->frames[i - 2].cfa;
    uint64_t slot = record->frames[i - 1].cfa;
    do slot -= sizeof(uintptr_t);
    while (slot > low && *(const uintptr_t *)(uintptr_t)slot != record->frames[i].pc);
    record->frames[i].slot = slot > low ? slot : 0;
  }
}

void pm__record_walk(struct pm_event_record *record) {
  uint64_t pc[PM_NATIVE_FRAMES], cfa[PM_NATIVE_FRAMES];
  struct pm_walk walk = {.pc = pc, .cfa = cfa, .capacity = PM_NATIVE_FRAMES};
  pm__python_session.hooks.walk_here(&walk);
  uint32_t from_leaf = walk.skipped > 0 ? walk.split : walk.count;
  record->count = from_leaf < PM_EVENT_FRAMES ? from_leaf : PM_EVENT_FRAMES;
  for (uint32_t i = 0; i < record->count; i++) {
    record->frames[i] = (struct pm_event_frame){.pc = pc[i], .cfa = cfa[i], .slot = 0};
  }
  find_slots(record);
}

uint32_t pm__record_index(const struct pm_event_record *record, uint64_t cfa) {
  uint32_t i = 0;
  while (i < record->count && record->frames[i].cfa != cfa) i++;
  return i;
}

bool pm__record_function(const struct pm_event_record *record, uint32_t index, uintptr_t *start) {
  uintptr_t inside_call = (uintptr_t)record->frames[index].pc - 1;
  return pm__python_session.hooks.function_at(inside_call, start);
}
