/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that had to take another way than they should. */
#include <stdio.h>

#include "base/text.h"
#include "report/report.h"

static const char tag[] = "[profile]";

size_t pm__report_mark(const char *row, size_t size, const char *mark, char *out) {
  bool json = row[0] == '{';
  size_t skip = json ? 1 : sizeof tag - 1;
  int made =
      snprintf(out, PM_REPORT_ROW_MAX, json ? "{\"unlogged\":\"%s\",%.*s" : "[profile %s]%.*s",
               mark, (int)(size - skip), row + skip);
  if (made < PM_REPORT_ROW_MAX) return (size_t)made;
  size_t kept = pm__text_whole(out, PM_REPORT_ROW_MAX - 1);
  out[kept] = '\n';
  return kept + 1;
}
