/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the CPU's file. */
#ifndef PM_UNWIND_MACHINE_H
#define PM_UNWIND_MACHINE_H

#if defined(__x86_64__)
#include "unwind/machine_x86_64.h"
#else
#error "no unwinder for this CPU yet"
#endif

#endif /* PM_UNWIND_MACHINE_H */
