/* SPDX-License-Identifier: Apache-2.0 */
/* formats.c: the table of formats; see export.h. A new one is a file and a row. */
#include <string.h>

#include "export/export.h"

/*
 * Longer endings before those they end in. speedscope is not written yet, and its
 * files must not come out as our summary.
 */
static const struct pm_export_format formats[] = {
    {"sparkprofile", pm__export_spark},  {"pb.gz", pm__export_pprof},
    {"collapsed", pm__export_collapsed}, {"speedscope.json", NULL},
    {"json", pm__export_json},
};

static bool has_ending(const char *path, const char *ending) {
  size_t size = strlen(path), ending_size = strlen(ending);
  if (size < ending_size || strcmp(path + size - ending_size, ending) != 0) {
    return false;
  }
  return size == ending_size || path[size - ending_size - 1] == '.';
}

const struct pm_export_format *pm__export_find(const char *path) {
  for (size_t i = 0; i < PM_COUNT_OF(formats); i++) {
    if (has_ending(path, formats[i].ending)) {
      return formats[i].write == NULL ? NULL : &formats[i];
    }
  }
  return NULL;
}
