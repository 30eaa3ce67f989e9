/* SPDX-License-Identifier: Apache-2.0 */
/* Call frame information (DWARF 5, 6.4, and the LSB's .eh_frame): CIEs, FDEs and their instructions. */
#ifndef PM_UNWIND_CFI_H
#define PM_UNWIND_CFI_H

#include "unwind/builder.h"
#include "unwind/section.h"

/* What FDEs share. */
struct pm_cie {
  uintptr_t address; /* of the CIE; 0: none read yet */
  bool valid;
  bool signal; /* augmentation 'S': the frame that the kernel made */
  bool has_data; /* augmentation 'z': FDEs carry augmentation data */
  uint8_t encoding; /* of the FDEs' addresses */
  uint64_t code_align;
  int64_t data_align;
  struct pm_frame_state initial; /* after the CIE's own instructions */
};

struct pm_fde {
  uintptr_t start, end; /* the code it covers */
  struct pm_bytes instructions;
};

/*
 * Reads the entry at `address` of .eh_frame: an FDE, together with its CIE, which
 * `cie` keeps from one call to the next. `*next` is the entry behind it, 0 after
 * the last one (also set when the answer is false).
 */
bool pm__cfi_read(const struct pm_section *section, uintptr_t address, struct pm_cie *cie,
                  struct pm_fde *fde, uintptr_t *next);

/* Executes the FDE and hands its rows to the builder; false when it ended in an error. */
bool pm__cfi_execute(const struct pm_section *section, const struct pm_cie *cie,
                     const struct pm_fde *fde, struct pm_builder *builder);

/* Executes a CIE's own instructions. For cfi.c. */
bool pm__cfi_initial(const struct pm_section *section, struct pm_cie *cie,
                     struct pm_bytes instructions);

#endif /* PM_UNWIND_CFI_H */
