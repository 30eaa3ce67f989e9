/* SPDX-License-Identifier: Apache-2.0 */
/* The first stacks that differed, kept as text for the report. Part of the oracle build. */
#ifndef PM_PYTHON_ORACLE_TEXT_H
#define PM_PYTHON_ORACLE_TEXT_H

#include "python/oracle.h"

/* What pm__shadow_copy gave. */
struct pm_oracle_shown {
  struct pm_shadow_frame frames[PM_PYTHON_FRAMES];
  uint32_t count, split, skipped;
};

/* `codes`: the true stack, innermost first. Any thread. */
void pm__oracle_note(enum pm_event kind, const void *const *codes, uint32_t count,
                     const struct pm_oracle_shown *shown);

/* Those kept so far, then NULL. */
void pm__oracle_examples(const char *examples[PM_ORACLE_EXAMPLES]);

#endif /* PM_PYTHON_ORACLE_TEXT_H */
