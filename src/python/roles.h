/* SPDX-License-Identifier: Apache-2.0 */
/* The native functions that calibration has met. The reading side is in python.h. */
#ifndef PM_PYTHON_ROLES_H
#define PM_PYTHON_ROLES_H

#include "python/python.h"

/* INTERPRETER wins over DISPATCH. One writer at a time; readers may run meanwhile. */
void pm__roles_add(uintptr_t function_start, enum pm_native_role role);
void pm__roles_clear(void);

#endif /* PM_PYTHON_ROLES_H */
