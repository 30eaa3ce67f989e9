/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.h: a sink that compresses into another sink. */
#ifndef PM_EXPORT_GZIP_H
#define PM_EXPORT_GZIP_H

#include <zlib.h>

#include "export/stream.h"

struct pm_gzip {
  z_stream deflate;
  pm_export_sink sink;
  void *context;
};

/* 0 or PYROMETER_E_MEMORY. After 0, pm__gzip_close must follow. */
int pm__gzip_open(struct pm_gzip *gzip, pm_export_sink sink, void *context);
/* A pm_export_sink with the pm_gzip as its context. */
int pm__gzip_put(void *gzip, const void *bytes, size_t size);
/* Writes the end (unless `abandon`) and frees; 0 or PYROMETER_E_CALLBACK. */
int pm__gzip_close(struct pm_gzip *gzip, bool abandon);

#endif /* PM_EXPORT_GZIP_H */
