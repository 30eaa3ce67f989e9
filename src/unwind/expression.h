/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions in CFI. Compilers, linkers and assembly use a handful of
 * forms; those become places, so the handler needs no interpreter.
 */
#ifndef PM_UNWIND_EXPRESSION_H
#define PM_UNWIND_EXPRESSION_H

#include "signal/table.h"
#include "unwind/bytes.h"

/* The place of an expression's value; PM_PLACE_UNKNOWN when it has another form. */
struct pm_place pm__expression_value(struct pm_bytes code);

/* As before, for an expression that gives the address of the value. */
struct pm_place pm__expression_location(struct pm_bytes code);

#endif /* PM_UNWIND_EXPRESSION_H */
