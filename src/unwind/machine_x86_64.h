/* SPDX-License-Identifier: Apache-2.0 */
/* What the compiler of tables must know of x86-64: DWARF numbers and PM_RULE_* bases. */
#ifndef PM_UNWIND_MACHINE_X86_64_H
#define PM_UNWIND_MACHINE_X86_64_H

enum {
  PM_DWARF_AUX = 3, /* rbx */
  PM_DWARF_FP = 6,  /* rbp */
  PM_DWARF_SP = 7,  /* rsp */
  PM_DWARF_RA = 16, /* the return address's column; rip in expressions */
};

#endif /* PM_UNWIND_MACHINE_X86_64_H */
