/* SPDX-License-Identifier: Apache-2.0 */
/* From an image's .eh_frame to its table. */
#ifndef PM_UNWIND_EHFRAME_H
#define PM_UNWIND_EHFRAME_H

#include "unwind/builder.h"
#include "unwind/image.h"
#include "unwind/section.h"

/* Private copies of the two sections. */
struct pm_eh_frame {
  struct pm_section header; /* .eh_frame_hdr */
  struct pm_section frames; /* .eh_frame */
};

/* Copies them out of the process; false when there are none or they cannot be read. */
bool pm__ehframe_copy(const struct pm_image *image, struct pm_eh_frame *out);
void pm__ehframe_free(struct pm_eh_frame *eh_frame);

/* Compiles them for the text [lo, hi). A pure function of its input. NULL: out of memory. */
struct pm_compiled *pm__ehframe_compile(const struct pm_eh_frame *eh_frame, uintptr_t lo,
                                        uintptr_t hi);

#endif /* PM_UNWIND_EHFRAME_H */
