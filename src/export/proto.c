/* SPDX-License-Identifier: Apache-2.0 */
/* proto.c: protobuf messages into a stream; see proto.h. */
#include "export/proto.h"

/* `base` first: protobuf-c hands a pointer to it back. */
struct target {
  ProtobufCBuffer base;
  struct pm_stream *stream;
};

static void append(ProtobufCBuffer *base, size_t size, const uint8_t *bytes) {
  pm__stream_put(((struct target *)base)->stream, bytes, size);
}

void pm__proto_put(struct pm_stream *stream, const ProtobufCMessage *message) {
  struct target target = {.base = {.append = append}, .stream = stream};
  protobuf_c_message_pack_to_buffer(message, &target.base);
}
