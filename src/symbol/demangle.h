/* SPDX-License-Identifier: Apache-2.0 */
/* From a symbol as the linker knows it to the name a reader knows. */
#ifndef PM_SYMBOL_DEMANGLE_H
#define PM_SYMBOL_DEMANGLE_H

#include "base/base.h"

/* The name without compiler suffixes, demangled where it is mangled; free() it. NULL: no memory. */
char *pm__demangle_name(const char *symbol);

#endif /* PM_SYMBOL_DEMANGLE_H */
