/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto.h: protobuf messages into a stream. Two messages of one type written one
 * after the other read as one, merged: so an encoder never holds a whole profile.
 */
#ifndef PM_EXPORT_PROTO_H
#define PM_EXPORT_PROTO_H

#include <protobuf-c/protobuf-c.h>

#include "export/stream.h"

/* protobuf-c's strings are not const, though packing only reads them. */
static inline char *pm__proto_text(const char *text) { return (char *)text; }

void pm__proto_put(struct pm_stream *stream, const ProtobufCMessage *message);

#endif /* PM_EXPORT_PROTO_H */
