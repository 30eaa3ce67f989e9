# SPDX-License-Identifier: Apache-2.0
"""Reads .pb.gz profiles (pprof's profile.proto) and says what is wrong with them.

Written from the published field numbers, not from proto/. As a program:
python pprofcheck.py FILE...
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from protowire import Message, Schema, WireError, read_message, write_message

SCHEMA: Schema = {
    "Profile": {
        1: ("sample_type", "[ValueType]"),
        2: ("sample", "[Sample]"),
        3: ("mapping", "[Mapping]"),
        4: ("location", "[Location]"),
        5: ("function", "[Function]"),
        6: ("string_table", "[string]"),
        7: ("drop_frames", "int64"),
        8: ("keep_frames", "int64"),
        9: ("time_nanos", "int64"),
        10: ("duration_nanos", "int64"),
        11: ("period_type", "ValueType"),
        12: ("period", "int64"),
        13: ("comment", "[int64]"),
        14: ("default_sample_type", "int64"),
        15: ("doc_url", "int64"),
    },
    "ValueType": {1: ("type", "int64"), 2: ("unit", "int64")},
    "Sample": {
        1: ("location_id", "[uint64]"),
        2: ("value", "[int64]"),
        3: ("label", "[Label]"),
    },
    "Label": {
        1: ("key", "int64"),
        2: ("str", "int64"),
        3: ("num", "int64"),
        4: ("num_unit", "int64"),
    },
    "Mapping": {
        1: ("id", "uint64"),
        2: ("memory_start", "uint64"),
        3: ("memory_limit", "uint64"),
        4: ("file_offset", "uint64"),
        5: ("filename", "int64"),
        6: ("build_id", "int64"),
        7: ("has_functions", "bool"),
        8: ("has_filenames", "bool"),
        9: ("has_line_numbers", "bool"),
        10: ("has_inline_frames", "bool"),
    },
    "Location": {
        1: ("id", "uint64"),
        2: ("mapping_id", "uint64"),
        3: ("address", "uint64"),
        4: ("line", "[Line]"),
        5: ("is_folded", "bool"),
    },
    "Line": {1: ("function_id", "uint64"), 2: ("line", "int64"), 3: ("column", "int64")},
    "Function": {
        1: ("id", "uint64"),
        2: ("name", "int64"),
        3: ("system_name", "int64"),
        4: ("filename", "int64"),
        5: ("start_line", "int64"),
    },
}

# Fields that hold an index into string_table.
TEXTS = {
    "sample_type": ("type", "unit"),
    "mapping": ("filename", "build_id"),
    "function": ("name", "system_name", "filename"),
}


@dataclass(frozen=True)
class Function:
    name: str
    system_name: str
    filename: str
    start_line: int


@dataclass(frozen=True)
class Mapping:
    filename: str
    build_id: str
    start: int
    limit: int
    has_functions: bool


@dataclass(frozen=True)
class Sample:
    stack: list[str]  # names of functions, innermost first
    functions: list[Function]  # the same, in full
    mappings: list[Mapping | None]  # the same
    values: list[int]  # one for each of sample_types
    labels: dict[str, str | int]


@dataclass(frozen=True)
class Profile:
    sample_types: list[tuple[str, str]]  # (type, unit)
    default_sample_type: str
    samples: list[Sample]
    functions: list[Function]
    mappings: list[Mapping]
    comments: list[str]
    period_type: tuple[str, str]
    period: int
    time_nanos: int
    duration_nanos: int

    def total(self, kind: str = "cpu") -> int:
        """The sum of one column."""
        column = [name for name, _ in self.sample_types].index(kind)
        return sum(sample.values[column] for sample in self.samples)


def read(data: bytes) -> Message:
    """The message with the names of SCHEMA. Raises WireError, gzip.BadGzipFile."""
    return read_message(SCHEMA, "Profile", gzip.decompress(data))


def dump(raw: Message) -> bytes:
    """The inverse of read."""
    return gzip.compress(write_message(SCHEMA, "Profile", raw), 1)


def _labels(raw: Message, labels: list[Message]) -> dict[str, str | int]:
    texts = raw["string_table"]
    return {
        texts[label["key"]]: texts[label["str"]] if label["str"] else label["num"]
        for label in labels
    }


def load(data: bytes) -> Profile:
    """The profile with ids and texts resolved. Raises what a file that fails check raises."""
    raw = read(data)
    texts = raw["string_table"]
    functions = {
        f["id"]: Function(
            texts[f["name"]], texts[f["system_name"]], texts[f["filename"]], f["start_line"]
        )
        for f in raw["function"]
    }
    mappings = {
        m["id"]: Mapping(
            texts[m["filename"]],
            texts[m["build_id"]],
            m["memory_start"],
            m["memory_limit"],
            m["has_functions"],
        )
        for m in raw["mapping"]
    }
    # Frames of a location, innermost first: inlined ones share it.
    frames = {
        loc["id"]: [
            (functions[line["function_id"]], mappings.get(loc["mapping_id"]))
            for line in loc["line"]
        ]
        for loc in raw["location"]
    }
    samples = []
    for sample in raw["sample"]:
        stack = [frame for ident in sample["location_id"] for frame in frames[ident]]
        samples.append(
            Sample(
                [function.name for function, _ in stack],
                [function for function, _ in stack],
                [mapping for _, mapping in stack],
                sample["value"],
                _labels(raw, sample["label"]),
            )
        )
    period_type = raw["period_type"] or {"type": 0, "unit": 0}
    return Profile(
        [(texts[t["type"]], texts[t["unit"]]) for t in raw["sample_type"]],
        texts[raw["default_sample_type"]],
        samples,
        list(functions.values()),
        list(mappings.values()),
        [texts[index] for index in raw["comment"]],
        (texts[period_type["type"]], texts[period_type["unit"]]),
        raw["period"],
        raw["time_nanos"],
        raw["duration_nanos"],
    )


def _text_indices(raw: Message) -> Iterator[int]:
    for name, fields in TEXTS.items():
        for message in raw[name]:
            yield from (message[field] for field in fields)
    for sample in raw["sample"]:
        for label in sample["label"]:
            yield from (label["key"], label["str"], label["num_unit"])
    yield from raw["comment"]
    yield raw["default_sample_type"]


def _check_texts(raw: Message) -> Iterator[str]:
    texts = raw["string_table"]
    if not texts or texts[0] != "":
        yield "texts: the first is not empty"
    if any(not 0 <= index < len(texts) for index in _text_indices(raw)):
        yield "texts: an index out of range"
    if any("\udc80" <= char <= "\udcff" for text in texts for char in text):
        yield "texts: not UTF-8"
    if len(set(texts)) != len(texts):
        yield "texts: one is there twice"


def _check_ids(raw: Message) -> Iterator[str]:
    known: dict[str, set[int]] = {}
    for name in ("mapping", "location", "function"):
        ids = [message["id"] for message in raw[name]]
        known[name] = set(ids)
        if 0 in ids or len(known[name]) != len(ids):
            yield f"ids: a {name} has the id 0, or that of another"
    for location in raw["location"]:
        if location["mapping_id"] and location["mapping_id"] not in known["mapping"]:
            yield "ids: a location in an unknown mapping"
        if any(line["function_id"] not in known["function"] for line in location["line"]):
            yield "ids: a line of an unknown function"
    for sample in raw["sample"]:
        if not known["location"].issuperset(sample["location_id"]):
            yield "ids: a sample at an unknown location"


def _check_samples(raw: Message) -> Iterator[str]:
    if not raw["sample_type"]:
        yield "samples: no sample_type"
    if any(len(sample["value"]) != len(raw["sample_type"]) for sample in raw["sample"]):
        yield "samples: not one value for each sample_type"
    if any(value < 0 for sample in raw["sample"] for value in sample["value"]):
        yield "samples: a negative value"
    if any(not sample["location_id"] for sample in raw["sample"]):
        yield "samples: an empty stack"


def _check_addresses(raw: Message) -> Iterator[str]:
    ranges = {m["id"]: (m["memory_start"], m["memory_limit"]) for m in raw["mapping"]}
    if any(start >= limit for start, limit in ranges.values()):
        yield "mappings: an empty range"
    for location in raw["location"]:
        start, limit = ranges.get(location["mapping_id"], (0, 1))
        if location["mapping_id"] and not start <= location["address"] < limit:
            yield "mappings: an address outside its mapping"


def check(data: bytes) -> list[str]:
    """What is wrong with the file; an empty list when pprof will read it."""
    try:
        raw = read(data)
    except (WireError, OSError, EOFError) as error:
        return [f"unreadable: {error}"]
    return [
        *_check_texts(raw),
        *_check_ids(raw),
        *_check_samples(raw),
        *_check_addresses(raw),
    ]


def main(paths: list[str], say: Callable[[str], None] = print) -> int:
    bad = 0
    for path in paths:
        for violation in check(Path(path).read_bytes()):
            say(f"{path}: {violation}")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
