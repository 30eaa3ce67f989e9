# SPDX-License-Identifier: Apache-2.0
"""Protobuf's wire format, read and written by hand for the tests.

The readers must not share a mistake with the writers, so nothing here comes from
proto/ or from a protobuf library.

A schema maps message names to fields: {number: (name, type)}. A type is a scalar
(SCALARS), the name of a message, or one of those in brackets for a repeated field;
"map<string>" and "map<Message>" are maps with string keys, "map<int32,Message>"
one with int32 keys. Absent scalars read as their zero, absent messages as None.
Fields the schema does not know are kept under UNKNOWN.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any, Union

Schema = dict[str, dict[int, tuple[str, str]]]
Message = dict[str, Any]
Value = Union[int, bytes]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
UNKNOWN = "?"
SCALARS: dict[str, Any] = {
    "int32": 0,
    "int64": 0,
    "uint64": 0,
    "enum": 0,
    "bool": False,
    "double": 0.0,
    "string": "",
    "bytes": b"",
}


class WireError(ValueError):
    """The bytes are not the message they should be."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at an offset, and the offset behind it."""
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("a number is cut short")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & (2**64 - 1), at
        shift += 7


def read_fields(data: bytes) -> Iterator[tuple[int, int, Value]]:
    """(field number, wire type, value) in the order of the file."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise WireError("a field has the number 0")
        if wire == VARINT:
            value, at = read_varint(data, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            size, at = read_varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise WireError(f"field {number} has the wire type {wire}")
        if at + size > len(data):
            raise WireError(f"field {number} is cut short")
        yield number, wire, data[at : at + size]
        at += size


def _signed(value: int, bits: int) -> int:
    value &= 2**bits - 1
    return value - 2**bits if value >> (bits - 1) else value


def _integer(kind: str, value: int) -> Any:
    if kind == "bool":
        return value != 0
    if kind == "uint64":
        return value
    return _signed(value, 64 if kind == "int64" else 32)


def _scalar(kind: str, wire: int, value: Value) -> Any:
    if isinstance(value, int):
        if kind in ("double", "string", "bytes"):
            raise WireError(f"a number where a {kind} should be")
        return _integer(kind, value)
    if kind == "double" and wire == FIXED64:
        return struct.unpack("<d", value)[0]
    if kind == "bytes" and wire == BYTES:
        return value
    if kind == "string" and wire == BYTES:
        return value.decode("utf-8", "surrogateescape")  # whoever checks looks for surrogates
    raise WireError(f"wire type {wire} where a {kind} should be")


def _packed(kind: str, data: bytes) -> list[Any]:
    if kind == "double":
        if len(data) % 8:
            raise WireError("packed doubles are cut short")
        return list(struct.unpack(f"<{len(data) // 8}d", data))
    values, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        values.append(_integer(kind, value))
    return values


def _read_one(schema: Schema, kind: str, wire: int, value: Value) -> Any:
    if kind in SCALARS:
        return _scalar(kind, wire, value)
    if not isinstance(value, bytes) or wire != BYTES:
        raise WireError(f"wire type {wire} where a {kind} should be")
    return read_message(schema, kind, value)


def _entry_types(kind: str) -> tuple[str, str]:
    """Key and value type of a map."""
    inner = kind[len("map<") : -1]
    key, _, value = inner.rpartition(",")
    return key or "string", value


def _merge(schema: Schema, message: Message, name: str, kind: str, wire: int, value: Value) -> None:
    if kind.startswith("["):
        item = kind[1:-1]
        if isinstance(value, bytes) and item in SCALARS and item not in ("string", "bytes"):
            values = _packed(item, value) if wire == BYTES else [_scalar(item, wire, value)]
            message[name].extend(values)
        else:
            message[name].append(_read_one(schema, item, wire, value))
    elif kind.startswith("map<"):
        key_type, value_type = _entry_types(kind)
        entry_schema = {**schema, "entry": {1: ("key", key_type), 2: ("value", value_type)}}
        entry = _read_one(entry_schema, "entry", wire, value)
        message[name][entry["key"]] = entry["value"]
    else:
        message[name] = _read_one(schema, kind, wire, value)


def empty_message(schema: Schema, name: str) -> Message:
    """A message with every field at its zero."""
    message: Message = {}
    for field, kind in schema[name].values():
        if kind.startswith("["):
            message[field] = []
        elif kind.startswith("map<"):
            message[field] = {}
        else:
            message[field] = SCALARS.get(kind)
    return message


def read_message(schema: Schema, name: str, data: bytes) -> Message:
    """The message as a dict. Raises WireError."""
    message = empty_message(schema, name)
    for number, wire, value in read_fields(data):
        known = schema[name].get(number)
        if known is None:
            message.setdefault(UNKNOWN, []).append(number)
        else:
            _merge(schema, message, known[0], known[1], wire, value)
    return message


def write_varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_field(number: int, wire: int, payload: bytes) -> bytes:
    size = write_varint(len(payload)) if wire == BYTES else b""
    return write_varint(number << 3 | wire) + size + payload


def _write_one(schema: Schema, kind: str, number: int, value: Any) -> bytes:
    if kind == "double":
        return write_field(number, FIXED64, struct.pack("<d", value))
    if kind == "string":
        return write_field(number, BYTES, value.encode("utf-8", "surrogateescape"))
    if kind == "bytes":
        return write_field(number, BYTES, value)
    if kind in SCALARS:
        return write_field(number, VARINT, write_varint(int(value)))
    return write_field(number, BYTES, write_message(schema, kind, value))


def _write_all(schema: Schema, kind: str, number: int, value: Any) -> Iterator[bytes]:
    if kind == "[double]":
        yield write_field(number, BYTES, struct.pack(f"<{len(value)}d", *value))
    elif re.fullmatch(r"\[u?int\d+\]", kind):
        yield write_field(number, BYTES, b"".join(map(write_varint, value)))
    elif kind.startswith("["):
        for item in value:
            yield _write_one(schema, kind[1:-1], number, item)
    elif kind.startswith("map<"):
        key_type, value_type = _entry_types(kind)
        for key, item in value.items():
            entry = _write_one(schema, key_type, 1, key) + _write_one(schema, value_type, 2, item)
            yield write_field(number, BYTES, entry)
    else:
        yield _write_one(schema, kind, number, value)


def write_message(schema: Schema, name: str, message: Message) -> bytes:
    """The inverse of read_message; zeros are left out, as proto3 does."""
    parts: list[bytes] = []
    for number, (field, kind) in schema[name].items():
        value = message[field]
        if kind in SCALARS and value == SCALARS[kind]:
            continue
        if value is not None and value not in ([], {}):
            parts.extend(_write_all(schema, kind, number, value))
    return b"".join(parts)
