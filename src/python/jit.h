/* SPDX-License-Identifier: Apache-2.0 */
/* CPython's own JIT: monitoring beside it gives wrong results (python/cpython#156319). */
#ifndef PM_PYTHON_JIT_H
#define PM_PYTHON_JIT_H

#include <stdbool.h>

/* Is it on? While Python still starts, it is not yet. With the GIL. */
bool pm__jit_is_on(void);

/* Was Python told to switch it on? With the GIL. */
bool pm__jit_is_wanted(void);

#define PM_JIT_REASON \
  "CPython's JIT is on (sys._jit.is_enabled()), and monitoring is not safe with it"

#endif /* PM_PYTHON_JIT_H */
