/* SPDX-License-Identifier: Apache-2.0 */
/* From a CFI row to the four-byte rule that the handler executes. */
#ifndef PM_UNWIND_ENCODE_H
#define PM_UNWIND_ENCODE_H

#include "unwind/builder.h"

/* The compact rule; kind PM_RULE_ODD when it needs the side table, NONE when it has no form at all. */
struct pm_rule pm__encode_rule(const struct pm_frame_state *state, bool signal);

/* The rule that names side table entry `index`. */
struct pm_rule pm__encode_odd(uint32_t index);

enum { PM_ODD_MAX = 1 << 20 };

#endif /* PM_UNWIND_ENCODE_H */
