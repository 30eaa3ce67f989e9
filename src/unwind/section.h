/* SPDX-License-Identifier: Apache-2.0 */
/* A private copy of a part of an object's memory: nobody can unmap it while it is read. */
#ifndef PM_UNWIND_SECTION_H
#define PM_UNWIND_SECTION_H

#include "base/base.h"
#include "unwind/bytes.h"

struct pm_section {
  uint8_t *bytes; /* malloc */
  size_t size;
  uintptr_t address; /* where bytes[0] lies in the process */
};

/*
 * Copies [address, address + size) of this process; what cannot be read is left
 * off at the end. False: out of memory, or nothing could be read. Never faults.
 */
bool pm__section_copy(struct pm_section *section, uintptr_t address, size_t size);
void pm__section_free(struct pm_section *section);

/* Copies into the caller's buffer; returns the number of bytes read. Never faults. */
size_t pm__section_read(void *out, uintptr_t address, size_t size);

/* A reader from `address` on; bad when that lies outside. */
struct pm_bytes pm__section_from(const struct pm_section *section, uintptr_t address);

/* The address in the process of the byte a reader stands at. */
static inline uintptr_t pm__section_address(const struct pm_section *section,
                                            const struct pm_bytes *reader) {
  return section->address + (uintptr_t)(reader->at - section->bytes);
}

#endif /* PM_UNWIND_SECTION_H */
