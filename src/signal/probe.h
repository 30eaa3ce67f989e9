/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the kernel whether memory can be read, without reading it. */
#ifndef PM_SIGNAL_PROBE_H
#define PM_SIGNAL_PROBE_H

#include "base/base.h"

enum { PM_PROBE_PAGE = 4096 }; /* the smallest page; a larger one is only asked for more often */

/* The range known to be readable; empty at first. */
struct pm_probe {
  uintptr_t lo, hi;
};

/* Can the page of `address` be read? One system call; leaves errno and the signal mask alone. */
bool pm__probe_page(uintptr_t address);

/* Can [address, address + size) be read? Remembers the range it has asked for. size <= a page. */
bool pm__probe_range(struct pm_probe *probe, uintptr_t address, uintptr_t size);

#endif /* PM_SIGNAL_PROBE_H */
