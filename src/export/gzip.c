/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.c: a sink that compresses into another sink; see gzip.h. */
#include "export/gzip.h"

#include <limits.h>
#include <string.h>

#include "pyrometer.h"

enum { OUT_SIZE = 16384, GZIP_WINDOW = 15 + 16 /* 16 asks zlib for a gzip header */ };

int pm__gzip_open(struct pm_gzip *gzip, pm_export_sink sink, void *context) {
  memset(gzip, 0, sizeof(*gzip));
  gzip->sink = sink;
  gzip->context = context;
  int result = deflateInit2(&gzip->deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                            Z_DEFAULT_STRATEGY);
  return result == Z_OK ? 0 : PYROMETER_E_MEMORY;
}

/* Runs deflate until it leaves room in its output: then it has taken all its input. */
static int run(struct pm_gzip *gzip, int flush) {
  unsigned char out[OUT_SIZE];
  do {
    gzip->deflate.next_out = out;
    gzip->deflate.avail_out = OUT_SIZE;
    deflate(&gzip->deflate, flush);
    size_t size = OUT_SIZE - gzip->deflate.avail_out;
    if (size > 0 && gzip->sink(gzip->context, out, size) != 0) {
      return PYROMETER_E_CALLBACK;
    }
  } while (gzip->deflate.avail_out == 0);
  return 0;
}

int pm__gzip_put(void *context, const void *bytes, size_t size) {
  struct pm_gzip *gzip = context;
  while (size > 0) {
    uInt part = size > UINT_MAX ? UINT_MAX : (uInt)size;
    gzip->deflate.next_in = (Bytef *)bytes;
    gzip->deflate.avail_in = part;
    int result = run(gzip, Z_NO_FLUSH);
    if (result != 0) {
      return result;
    }
    bytes = (const Bytef *)bytes + part;
    size -= part;
  }
  return 0;
}

int pm__gzip_close(struct pm_gzip *gzip, bool abandon) {
  int result = abandon ? 0 : run(gzip, Z_FINISH);
  deflateEnd(&gzip->deflate);
  return result;
}
