/* SPDX-License-Identifier: Apache-2.0 */
/* The events that calibration raises, each with the native stack it came from. */
#ifndef PM_PYTHON_RECORD_H
#define PM_PYTHON_RECORD_H

#include "base/base.h"
#include "signal/shadow.h"

enum {
  PM_EVENT_RECORDS = 256,
  PM_EVENT_FRAMES = 32, /* of a walk, from the leaf: dispatch takes 2 to 6 */
};

struct pm_event_frame {
  uint64_t pc, cfa;
  uint64_t slot; /* where pc was read from the stack; 0: not known */
};

struct pm_event_record {
  enum pm_event kind;
  const void *code;   /* compared only */
  const void *parent; /* that of the frame under it, where it was asked for; else NULL */
  uintptr_t address;
  uint32_t count;
  struct pm_event_frame frames[PM_EVENT_FRAMES]; /* leaf first */
};

/* In the order they were raised in, all by the calibrating thread. */
struct pm_event_log {
  struct pm_event_record *records; /* PM_EVENT_RECORDS long */
  uint32_t count;
};

/* Writes the caller's native stack into `record`. */
void pm__record_walk(struct pm_event_record *record);

/* The frame with this CFA; record->count: none. */
uint32_t pm__record_index(const struct pm_event_record *record, uint64_t cfa);

/* The start of the function that frame `index` is in; false where none is known. */
bool pm__record_function(const struct pm_event_record *record, uint32_t index, uintptr_t *start);

#endif /* PM_PYTHON_RECORD_H */
