/* SPDX-License-Identifier: Apache-2.0 */
/*
 * label.h: words that several formats print.
 *
 * Exporters pass every text of a view through pm__text_clean: the view promises
 * clean text, but one bad byte would make a whole Spark file unreadable.
 */
#ifndef PM_EXPORT_LABEL_H
#define PM_EXPORT_LABEL_H

#include "base/arena.h"
#include "profile/view.h"

/* Clean thread names by index, with " (#tid)" where two threads share one; NULL: no memory. */
const char **pm__label_threads(struct pm_arena *arena, const struct pm_view *view);

/* One line that says how much of the truth the profile holds: samples, losses, CPU. */
const char *pm__label_summary(struct pm_arena *arena, const struct pm_view *view);

#endif /* PM_EXPORT_LABEL_H */
