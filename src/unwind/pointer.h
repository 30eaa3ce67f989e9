/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded pointers (DW_EH_PE_*) of .eh_frame and .eh_frame_hdr. */
#ifndef PM_UNWIND_POINTER_H
#define PM_UNWIND_POINTER_H

#include "unwind/section.h"

enum {
  PM_POINTER_OMITTED = 0xff,
  PM_POINTER_DATA_SDATA4 = 0x3b, /* the search table every linker writes */
};

/*
 * Reads one pointer. `data` is what datarel pointers count from. Sets the
 * reader's `bad` for encodings that do not occur in code addresses.
 */
uintptr_t pm__pointer_read(const struct pm_section *section, struct pm_bytes *reader,
                           uint8_t encoding, uintptr_t data);

/* The value alone, without what it is relative to: lengths are written so. */
uintptr_t pm__pointer_value(struct pm_bytes *reader, uint8_t encoding);

#endif /* PM_UNWIND_POINTER_H */
