/* SPDX-License-Identifier: Apache-2.0 */
/* Separate debug files: where a distribution keeps the symbols it stripped. */
#ifndef PM_SYMBOL_DEBUGFILE_H
#define PM_SYMBOL_DEBUGFILE_H

#include "symbol/object.h"

/*
 * Opens the debug file that belongs to `object`, which was read from `path`: by
 * build-id under `root`, else by .gnu_debuglink. It must have the same build-id,
 * or, where one of them has none, the checksum that the link names.
 */
bool pm__debugfile_open(struct pm_elf *debug, const struct pm_elf *object, const char *path,
                        const char *root);

#endif /* PM_SYMBOL_DEBUGFILE_H */
