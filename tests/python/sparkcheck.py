# SPDX-License-Identifier: Apache-2.0
"""Reads .sparkprofile files and says what the Spark viewer would choke on.

Written from notes on the format and the viewer's behaviour, not from proto/.
`check` returns one line for each violation; a line of a fatal rule starts with
"rule N:", where N counts the reasons for which the viewer shows nothing, crashes or
hangs. As a program: python sparkcheck.py FILE...
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from protowire import Message, Schema, WireError, read_message, write_message

SCHEMA: Schema = {
    "SamplerData": {
        1: ("metadata", "SamplerMetadata"),
        2: ("threads", "[ThreadNode]"),
        3: ("class_sources", "map<string>"),
        4: ("method_sources", "map<string>"),
        5: ("line_sources", "map<string>"),
        6: ("time_windows", "[int32]"),
        7: ("time_window_statistics", "map<int32,WindowStatistics>"),
        8: ("channel_info", "SocketChannelInfo"),
    },
    "ThreadNode": {
        1: ("name", "string"),
        3: ("children", "[StackTraceNode]"),
        4: ("times", "[double]"),
        5: ("children_refs", "[int32]"),
    },
    "StackTraceNode": {
        3: ("class_name", "string"),
        4: ("method_name", "string"),
        5: ("parent_line_number", "int32"),
        6: ("line_number", "int32"),
        7: ("method_desc", "string"),
        8: ("times", "[double]"),
        9: ("children_refs", "[int32]"),
    },
    "SamplerMetadata": {
        1: ("creator", "CommandSenderMetadata"),
        2: ("start_time", "int64"),
        3: ("interval", "int32"),
        4: ("thread_dumper", "ThreadDumper"),
        5: ("data_aggregator", "DataAggregator"),
        6: ("comment", "string"),
        7: ("platform_metadata", "PlatformMetadata"),
        8: ("platform_statistics", "PlatformStatistics"),
        9: ("system_statistics", "SystemStatistics"),
        10: ("server_configurations", "map<string>"),
        11: ("end_time", "int64"),
        12: ("number_of_ticks", "int32"),
        13: ("sources", "map<PluginOrModMetadata>"),
        14: ("extra_platform_metadata", "map<string>"),
        15: ("sampler_mode", "enum"),
        16: ("sampler_engine", "enum"),
        17: ("sampler_engine_version", "string"),
    },
    "ThreadDumper": {1: ("type", "enum"), 2: ("ids", "[int64]"), 3: ("patterns", "[string]")},
    "DataAggregator": {
        1: ("type", "enum"),
        2: ("thread_grouper", "enum"),
        3: ("tick_length_threshold", "int64"),
        4: ("number_of_included_ticks", "int32"),
    },
    "CommandSenderMetadata": {
        1: ("type", "enum"),
        2: ("name", "string"),
        3: ("unique_id", "string"),
    },
    "PluginOrModMetadata": {
        1: ("name", "string"),
        2: ("version", "string"),
        3: ("author", "string"),
        4: ("description", "string"),
        5: ("builtin", "bool"),
    },
    "PlatformMetadata": {
        1: ("type", "enum"),
        2: ("name", "string"),
        3: ("version", "string"),
        4: ("minecraft_version", "string"),
        7: ("spark_version", "int32"),
        8: ("brand", "string"),
    },
    "PlatformStatistics": {1: ("memory", "PlatformMemory"), 3: ("uptime", "int64")},
    "PlatformMemory": {1: ("heap", "MemoryUsage"), 2: ("non_heap", "MemoryUsage")},
    "MemoryUsage": {
        1: ("used", "int64"),
        2: ("committed", "int64"),
        3: ("init", "int64"),
        4: ("max", "int64"),
    },
    "SystemStatistics": {
        1: ("cpu", "Cpu"),
        2: ("memory", "SystemMemory"),
        4: ("disk", "Space"),
        5: ("os", "Os"),
        6: ("java", "Java"),
        7: ("uptime", "int64"),
    },
    "Cpu": {
        1: ("threads", "int32"),
        2: ("process_usage", "Usage"),
        3: ("system_usage", "Usage"),
        4: ("model_name", "string"),
    },
    "Usage": {1: ("last1m", "double"), 2: ("last15m", "double")},
    "SystemMemory": {1: ("physical", "Space"), 2: ("swap", "Space")},
    "Space": {1: ("used", "int64"), 2: ("total", "int64")},
    "Os": {1: ("arch", "string"), 2: ("name", "string"), 3: ("version", "string")},
    "Java": {
        1: ("vendor", "string"),
        2: ("version", "string"),
        3: ("vendor_version", "string"),
        4: ("vm_args", "string"),
    },
    "WindowStatistics": {
        1: ("ticks", "int32"),
        2: ("cpu_process", "double"),
        3: ("cpu_system", "double"),
        4: ("tps", "double"),
        5: ("mspt_median", "double"),
        6: ("mspt_max", "double"),
        7: ("players", "int32"),
        8: ("entities", "int32"),
        9: ("tile_entities", "int32"),
        10: ("chunks", "int32"),
        11: ("start_time", "int64"),
        12: ("end_time", "int64"),
        13: ("duration", "int32"),
    },
    "SocketChannelInfo": {1: ("channel_id", "string"), 2: ("public_key", "bytes")},
}

MAX_SAFE = 2**53 - 1
MAX_DEPTH = 512
GZIP = b"\x1f\x8b"
TOLERANCE = 1e-6  # ms; inclusive times are sums of doubles

# What the widgets read without looking, once platform_statistics is there.
WIDGETS = (
    "platform_statistics.memory.heap",
    "system_statistics.cpu.process_usage",
    "system_statistics.cpu.system_usage",
    "system_statistics.memory.physical",
    "system_statistics.memory.swap",
    "system_statistics.disk",
)
# What the information page reads, once system_statistics is there.
INFORMATION = ("system_statistics.os", "system_statistics.cpu", "system_statistics.java")


def load(data: bytes) -> Message:
    """The file as nested dicts, with the names of SCHEMA. Raises WireError."""
    if data.startswith(GZIP):
        raise WireError("rule 4: the file is gzip, not a bare message")
    return read_message(SCHEMA, "SamplerData", data)


def dump(profile: Message) -> bytes:
    """The inverse of load."""
    return write_message(SCHEMA, "SamplerData", profile)


def walk(thread: Message) -> Iterator[tuple[Message, int, int]]:
    """(node, its index, depth from 0) outermost first, over a thread that is a tree."""
    pending = [(ref, 0) for ref in reversed(thread["children_refs"])]
    while pending:
        index, depth = pending.pop()
        node = thread["children"][index]
        yield node, index, depth
        pending.extend((ref, depth + 1) for ref in reversed(node["children_refs"]))


def self_times(thread: Message) -> dict[tuple[str, str, str, int], float]:
    """Self ms over all windows by (class, method, desc, line), as the viewer counts it."""
    found: dict[tuple[str, str, str, int], float] = {}
    for node in thread["children"]:
        below = sum(sum(thread["children"][ref]["times"]) for ref in node["children_refs"])
        key = (node["class_name"], node["method_name"], node["method_desc"], node["line_number"])
        found[key] = found.get(key, 0.0) + sum(node["times"]) - below
    return found


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every scalar with where it stands, map keys included."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path} (key)", key
            yield from _leaves(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _get(metadata: Message, path: str) -> Any:
    value: Any = metadata
    for name in path.split("."):
        value = None if value is None else value[name]
    return value


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _check_scalars(profile: Message) -> Iterator[str]:
    for path, value in _leaves(profile, "SamplerData"):
        if isinstance(value, str) and not _is_utf8(value):
            yield f"rule 2: not UTF-8: {path!r}"
        elif isinstance(value, int) and abs(value) > MAX_SAFE:
            yield f"rule 3: an int64 past 2^53 - 1: {path}"


def _check_tree(thread: Message, name: str) -> Iterator[str]:
    count, parents = len(thread["children"]), [0] * len(thread["children"])
    callers = [(count, thread["children_refs"])]
    callers += [(i, node["children_refs"]) for i, node in enumerate(thread["children"])]
    for caller, refs in callers:
        for ref in refs:
            if not 0 <= ref < count:
                yield f"rule 4: child index {ref} out of range in {name}"
                continue
            parents[ref] += 1
            if ref >= caller:
                yield f"order: node {ref} stands behind its caller {caller} in {name}"
    for index, number in enumerate(parents):
        if number != 1:
            yield f"rule 4: node {index} has {number} parents in {name}"


def _check_depth(thread: Message, name: str) -> Iterator[str]:
    depth = max((depth + 1 for _, _, depth in walk(thread)), default=0)
    if depth > MAX_DEPTH:
        yield f"rule 8: {depth} nodes deep in {name}"


def _check_siblings(thread: Message, name: str) -> Iterator[str]:
    for caller in [thread, *thread["children"]]:
        rows = [thread["children"][ref] for ref in caller["children_refs"]]
        keys = {
            (r["class_name"], r["method_name"], r["method_desc"], r["line_number"]) for r in rows
        }
        if len(keys) != len(rows):
            yield f"siblings: equal rows below one caller in {name}"


def _check_times(thread: Message, name: str, windows: int) -> Iterator[str]:
    for node in [thread, *thread["children"]]:
        if not node["times"]:
            yield f"rule 9: a node without times in {name}"
        elif len(node["times"]) != windows:
            yield f"times: {len(node['times'])} values for {windows} windows in {name}"
        if any(not math.isfinite(time) or time < 0 for time in node["times"]):
            yield f"times: not a number or negative in {name}"


def _check_totals(thread: Message, name: str) -> Iterator[str]:
    for caller in [thread, *thread["children"]]:
        below = [thread["children"][ref]["times"] for ref in caller["children_refs"]]
        for window, time in enumerate(caller["times"]):
            total = sum(times[window] for times in below)
            slack = TOLERANCE + abs(time) * 1e-12 * (len(below) + 1)
            if total > time + slack or (caller is thread and total < time - slack):
                yield f"totals: children have {total} ms of {time} ms in {name}"


def _check_thread(thread: Message, windows: int) -> Iterator[str]:
    name = f"thread {thread['name']!r}"
    found = list(_check_tree(thread, name)) + list(_check_times(thread, name, windows))
    yield from found
    if not found:  # the rest walks the tree
        yield from _check_depth(thread, name)
        yield from _check_siblings(thread, name)
        yield from _check_totals(thread, name)


def _check_windows(profile: Message) -> Iterator[str]:
    windows = profile["time_windows"]
    if not windows:
        yield "windows: there is none"
    if windows != sorted(set(windows)):
        yield "windows: not ascending and distinct"
    for window in windows:
        if len(windows) > 1 and profile["time_window_statistics"].get(window) is None:
            yield f"rule 5: window {window} without statistics"
    for window, statistics in profile["time_window_statistics"].items():
        shares = (statistics["cpu_process"], statistics["cpu_system"]) if statistics else ()
        if window not in windows:
            yield f"windows: statistics for {window}, which is no window"
        if not all(0 <= share <= 1 for share in shares):
            yield f"windows: a CPU share outside 0 to 1 in {window}"


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _is_json(text: str) -> bool:
    """What JavaScript's JSON.parse takes: no NaN, no Infinity."""
    try:
        json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return False
    return True


def _check_metadata(metadata: Message) -> Iterator[str]:
    if metadata["platform_statistics"] is not None:
        for path in WIDGETS:
            if _get(metadata, path) is None:
                yield f"rule 6: platform_statistics without {path}"
    if metadata["system_statistics"] is not None:
        for path in INFORMATION:
            if _get(metadata, path) is None:
                yield f"rule 7: system_statistics without {path}"
    for field in ("extra_platform_metadata", "server_configurations"):
        for key, text in metadata[field].items():
            if not _is_json(text):
                yield f"rule 7: {field}[{key!r}] is not JSON: {text!r}"
    platform = metadata["platform_metadata"]
    if platform is None or platform["spark_version"] < 2:
        yield "platform: an old version of spark, says the viewer"
    if metadata["creator"] is None:
        yield "metadata: no creator"


def _check_profile(profile: Message) -> Iterator[str]:
    if profile["metadata"] is None:
        yield "rule 1: metadata missing"
    else:
        yield from _check_metadata(profile["metadata"])
    yield from _check_scalars(profile)
    yield from _check_windows(profile)
    for thread in profile["threads"]:
        yield from _check_thread(thread, len(profile["time_windows"]))


def check(data: bytes) -> list[str]:
    """What is wrong with the file; an empty list when the viewer will show it."""
    try:
        profile = load(data)
    except WireError as error:
        return [str(error) if str(error).startswith("rule") else f"unreadable: {error}"]
    return list(_check_profile(profile))


def main(paths: list[str], say: Callable[[str], None] = print) -> int:
    bad = 0
    for path in paths:
        for violation in check(Path(path).read_bytes()):
            say(f"{path}: {violation}")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
