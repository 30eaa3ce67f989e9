/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c: a buffer before a sink; see stream.h. */
#include "export/stream.h"

#include <string.h>

#include "pyrometer.h"

void pm__stream_open(struct pm_stream *stream, pm_export_sink sink, void *context) {
  stream->sink = sink;
  stream->context = context;
  stream->error = 0;
  stream->used = 0;
}

static void pass_on(struct pm_stream *stream, const void *bytes, size_t size) {
  if (stream->error == 0 && size > 0 && stream->sink(stream->context, bytes, size) != 0) {
    stream->error = PYROMETER_E_CALLBACK;
  }
}

static void flush(struct pm_stream *stream) {
  pass_on(stream, stream->bytes, stream->used);
  stream->used = 0;
}

void pm__stream_put(struct pm_stream *stream, const void *bytes, size_t size) {
  if (size == 0) {
    return;
  }
  if (size > PM_STREAM_SIZE - stream->used) {
    flush(stream);
  }
  if (size > PM_STREAM_SIZE) {
    pass_on(stream, bytes, size);
    return;
  }
  memcpy(stream->bytes + stream->used, bytes, size);
  stream->used += size;
}

int pm__stream_close(struct pm_stream *stream) {
  flush(stream);
  return stream->error;
}
