/* SPDX-License-Identifier: Apache-2.0 */
/* Whose code it is, from its file. */
#ifndef PM_PYTHON_CATEGORY_H
#define PM_PYTHON_CATEGORY_H

#include "python/python.h"

/* Where the standard library lies, or "" (it then counts as application). Called once a start. */
void pm__category_set_stdlib(const char *folder);

/* `file` is a code object's co_filename. Pure, but for a look whether our library stands beside it. */
enum pm_code_category pm__category_of(const char *file);

#endif /* PM_PYTHON_CATEGORY_H */
