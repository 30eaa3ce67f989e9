/* SPDX-License-Identifier: Apache-2.0 */
/* Names from the profiled program are data: made fit for every output once, here. */
#ifndef PM_BASE_TEXT_H
#define PM_BASE_TEXT_H

#include "base/arena.h"

/*
 * The text itself when it is clean, else a copy in the arena: bytes that are not
 * UTF-8 become U+FFFD, control characters (line breaks, escapes, C1) a space.
 */
const char *pm__text_clean(struct pm_arena *arena, const char *text);

/* `size`, or less where the text was cut there inside of a character. */
size_t pm__text_whole(const char *text, size_t size);

#endif /* PM_BASE_TEXT_H */
