/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h: a buffer before a sink. Errors stick, so an encoder writes on and
 * looks once, at pm__stream_close.
 */
#ifndef PM_EXPORT_STREAM_H
#define PM_EXPORT_STREAM_H

#include "export/export.h"

/* Small enough for musl's 128 KiB thread stacks, two of them nested. */
enum { PM_STREAM_SIZE = 16384 };

struct pm_stream {
  pm_export_sink sink;
  void *context;
  int error; /* the first one: PYROMETER_E_CALLBACK, or what an encoder put here */
  size_t used;
  unsigned char bytes[PM_STREAM_SIZE];
};

void pm__stream_open(struct pm_stream *stream, pm_export_sink sink, void *context);
void pm__stream_put(struct pm_stream *stream, const void *bytes, size_t size);
/* Empties the buffer; 0 or the first error. */
int pm__stream_close(struct pm_stream *stream);

#endif /* PM_EXPORT_STREAM_H */
