/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export: one file a format, each a function from a view to bytes.
 * Called by: session. Locks: none; reads an immutable view, computes nothing the
 * view already knows, knows no other exporter.
 */
#ifndef PM_EXPORT_EXPORT_H
#define PM_EXPORT_EXPORT_H

#include "base/base.h"
#include "profile/view.h"

/* Takes bytes in order; non-zero stops the export with PYROMETER_E_CALLBACK. */
typedef int (*pm_export_sink)(void *context, const void *bytes, size_t size);

/* Each returns 0 or a PYROMETER_E_* code. */
int pm__export_spark(const struct pm_view *view, pm_export_sink sink, void *context);
int pm__export_pprof(const struct pm_view *view, pm_export_sink sink, void *context);
int pm__export_collapsed(const struct pm_view *view, pm_export_sink sink, void *context);
int pm__export_json(const struct pm_view *view, pm_export_sink sink, void *context);

struct pm_export_format {
  const char *ending; /* without the first dot */
  int (*write)(const struct pm_view *view, pm_export_sink sink, void *context);
};

/* The format whose ending `path` has, or that is named `path` itself; NULL when unknown. */
const struct pm_export_format *pm__export_find(const char *path);

/*
 * Writes through `format` into a temporary file beside `path` (mode 0600,
 * O_EXCL|O_NOFOLLOW) and renames it over `path`. An existing `path` is replaced
 * only when it is a regular file of ours. On an error nothing is left behind.
 */
int pm__export_file(const struct pm_view *view, const struct pm_export_format *format,
                    const char *path);

#endif /* PM_EXPORT_EXPORT_H */
