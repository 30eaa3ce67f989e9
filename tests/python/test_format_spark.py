# SPDX-License-Identifier: Apache-2.0
"""Every odd view as a .sparkprofile, and every fault the Spark viewer dies of.

Each fault is put into a file that was good before, and sparkcheck must name it.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import sparkcheck
from formatfiles import VIEWS, Files, files, non_zero
from protowire import UNKNOWN, Message

__all__ = ["files"]

MAIN = ("[Python] __main__", "<module>")


@pytest.mark.parametrize("view", VIEWS)
def test_spark_is_accepted(files: Files, view: str) -> None:
    assert sparkcheck.check(files.read(view, "sparkprofile")) == []


@pytest.mark.parametrize("view", VIEWS)
def test_spark_holds_the_truth(files: Files, view: str) -> None:
    profile, truth = files.spark(view), files.truth(view)
    assert profile["time_windows"] == truth["windows"]
    assert len(profile["threads"]) == len(truth["threads"])
    functions: dict[Any, float] = {}
    for thread, wanted in zip(profile["threads"], truth["threads"]):
        assert thread["times"] == pytest.approx([ns / 1e6 for ns in wanted["window_ns"]])
        for key, ms in sparkcheck.self_times(thread).items():
            functions[key] = functions.get(key, 0.0) + ms
    assert non_zero(functions.values()) == pytest.approx(
        non_zero(ns / 1e6 for ns in truth["self_ns"])
    )


def test_spark_writes_only_known_fields(files: Files) -> None:
    profile = files.spark("normal")
    messages = [profile, profile["metadata"], *profile["threads"]]
    messages += [node for thread in profile["threads"] for node in thread["children"]]
    assert not [message for message in messages if UNKNOWN in message]


def test_spark_metadata(files: Files) -> None:
    metadata = files.spark("normal")["metadata"]
    platform, system = metadata["platform_metadata"], metadata["system_statistics"]
    assert (platform["name"], platform["brand"], platform["type"]) == ("Pyrometer", "Pyrometer", 3)
    assert (platform["spark_version"], platform["version"]) == (2, "9.8.7")
    assert metadata["creator"]["name"] == "app.py (pid 71)"
    assert metadata["interval"] == 10000
    assert (metadata["sampler_mode"], metadata["sampler_engine"]) == (0, 1)
    assert metadata["sampler_engine_version"] == "pyrometer 9.8.7"
    assert metadata["start_time"] == files.truth("normal")["windows"][0] * 60000
    assert metadata["end_time"] - metadata["start_time"] == system["uptime"] == 120000
    assert system["java"]["version"] == "(none; CPython 3.12.1)"
    assert "3 lost" in metadata["comment"]
    extra = {key: json.loads(text) for key, text in metadata["extra_platform_metadata"].items()}
    assert extra == files.json("normal")["diagnostics"]


def test_spark_frames(files: Files) -> None:
    nodes = files.spark("normal")["threads"][0]["children"]
    shown = {(n["class_name"], n["method_name"], n["method_desc"], n["line_number"]) for n in nodes}
    assert shown == {
        ("[Python] __main__", "<module>", "app.py", 1),
        ("[Python] pkg.work", "Engine.run", "pkg/work.py", 88),
        ("[Python] pkg.work", "helper", "pkg/work.py", 12),
        ("[Python] plug.a", "tick", "plug/a.py", 5),
        ("libm.so.6", "sin", "", 0),
        ("native", "[pyrometer]", "", 0),
        ("native", "(unsampled)", "", 0),
    }


def test_spark_sources(files: Files) -> None:
    profile = files.spark("normal")
    assert profile["class_sources"] == {"[Python] plug.a": "plug"}
    assert profile["method_sources"] == {
        "[Python] pkg.work;Engine.run;pkg/work.py": "pkg",
        "[Python] pkg.work;helper;pkg/work.py": "vendored",
    }


def test_thread_names_get_a_tid_only_when_they_collide(files: Files) -> None:
    names = [thread["name"] for thread in files.spark("normal")["threads"]]
    assert names == ["MainThread", "worker (#72)", "worker (#73)"]
    assert list(dict.fromkeys(s[0] for s, _ in files.collapsed("normal"))) == names
    names = [thread["name"] for thread in files.spark("threads")["threads"]]
    assert len(set(names)) == 300


def test_spark_idle_windows_are_there(files: Files) -> None:
    profile = files.spark("windows")
    statistics = [profile["time_window_statistics"][w] for w in profile["time_windows"]]
    assert len(statistics) == 60
    assert all(s["duration"] == 60000 for s in statistics)
    busy = [w for w, s in enumerate(statistics) if s["cpu_process"] > 0]
    assert busy == [w for w, ms in enumerate(profile["threads"][0]["times"]) if ms > 0]
    assert busy == list(range(0, 60, 7))


@pytest.mark.parametrize(("view", "cut"), [("deep300", 0), ("deep301", 2), ("deep1800", 1501)])
def test_spark_cuts_deep_stacks_in_the_middle(files: Files, view: str, cut: int) -> None:
    thread = files.spark(view)["threads"][0]
    nodes = list(sparkcheck.walk(thread))
    assert max(depth for _, _, depth in nodes) == 299
    names = [node["method_name"] for node, _, _ in nodes if node["class_name"] == "native"]
    assert names == ([f"[truncated {cut}]"] if cut else [])
    root = nodes[0][0]
    assert (root["class_name"], root["method_name"]) == MAIN
    assert root["times"] == thread["times"]
    if cut:
        depths = [depth for node, _, depth in nodes if node["class_name"] == "native"]
        assert depths == [150]
    # A function keeps its self time even when all its callers are gone.
    assert any(node["method_name"] == "only_in_the_middle" for node, _, _ in nodes)


def test_spark_clamps_numbers(files: Files) -> None:
    profile = files.spark("numbers")
    assert profile["metadata"]["end_time"] == sparkcheck.MAX_SAFE
    assert profile["metadata"]["interval"] == 0
    assert profile["threads"][0]["children"][0]["line_number"] == 2**31 - 1


def test_spark_empty_profile_says_why(files: Files) -> None:
    metadata = files.spark("nothing")["metadata"]
    assert "0 samples" in metadata["comment"]
    assert "absent: no interpreter in this process" in metadata["comment"]
    assert metadata["system_statistics"]["java"]["version"] == "(none)"
    assert files.spark("empty")["threads"][0]["times"] == [0.0]


# What the viewer dies of.


def first_node(profile: Message) -> Any:
    return profile["threads"][0]["children"][0]


def remove_metadata(profile: Message) -> None:
    profile["metadata"] = None


def spoil_method(profile: Message) -> None:
    first_node(profile)["method_name"] = "caf\udce9"  # written as the lone byte E9


def spoil_map_key(profile: Message) -> None:
    profile["class_sources"]["\udcff"] = "source"


def enlarge_start(profile: Message) -> None:
    profile["metadata"]["start_time"] = 2**53


def enlarge_window(profile: Message) -> None:
    profile["time_window_statistics"][profile["time_windows"][0]]["end_time"] = -(2**53)


def point_nowhere(profile: Message) -> None:
    first_node(profile)["children_refs"] = [len(profile["threads"][0]["children"])]


def point_before(profile: Message) -> None:
    profile["threads"][0]["children_refs"] = [-1]


def add_parent(profile: Message) -> None:
    profile["threads"][0]["children_refs"].append(0)


def make_cycle(profile: Message) -> None:
    nodes = profile["threads"][0]["children"]
    nodes[0]["children_refs"] = [len(nodes) - 1]


def forget_roots(profile: Message) -> None:
    profile["threads"][0]["children_refs"] = []


def remove_statistics(profile: Message) -> None:
    del profile["time_window_statistics"][profile["time_windows"][1]]


def widgets_of(profile: Message) -> Any:
    """Puts in complete platform and system statistics."""
    space = {"used": 1, "total": 2}
    usage = {"last1m": 0.5, "last15m": 0.25}
    memory = dict.fromkeys(("used", "committed", "init", "max"), 1)
    metadata = profile["metadata"]
    metadata["platform_statistics"] = {"memory": {"heap": memory, "non_heap": None}, "uptime": 1}
    metadata["system_statistics"]["memory"] = {"physical": space, "swap": dict(space)}
    metadata["system_statistics"]["disk"] = dict(space)
    metadata["system_statistics"]["cpu"].update(process_usage=usage, system_usage=dict(usage))
    return metadata


def without(path: str) -> Callable[[Message], None]:
    """A fault: complete statistics, but for one part."""

    def remove(profile: Message) -> None:
        holder = widgets_of(profile)
        *names, last = path.split(".")
        for name in names:
            holder = holder[name]
        holder[last] = None

    return remove


def without_information(part: str) -> Callable[[Message], None]:
    def remove(profile: Message) -> None:
        profile["metadata"]["system_statistics"][part] = None

    return remove


def write_plain_text(profile: Message) -> None:
    profile["metadata"]["extra_platform_metadata"]["backend"] = "monitoring"


def write_not_a_number(profile: Message) -> None:
    profile["metadata"]["extra_platform_metadata"]["share"] = "NaN"


def write_plain_configuration(profile: Message) -> None:
    profile["metadata"]["server_configurations"]["file"] = "key=value"


def stack_up(profile: Message) -> None:
    thread = profile["threads"][0]
    leaf = dict(first_node(profile), children_refs=[], times=thread["times"])
    thread["children"] = [
        dict(leaf, children_refs=[i - 1] if i else []) for i in range(sparkcheck.MAX_DEPTH + 1)
    ]
    thread["children_refs"] = [sparkcheck.MAX_DEPTH]


def empty_thread_times(profile: Message) -> None:
    profile["threads"][0]["times"] = []


def empty_node_times(profile: Message) -> None:
    first_node(profile)["times"] = []


def drop_a_time(profile: Message) -> None:
    first_node(profile)["times"] = first_node(profile)["times"][1:]


def write_nan(profile: Message) -> None:
    first_node(profile)["times"][0] = math.nan


def write_negative(profile: Message) -> None:
    first_node(profile)["times"][0] = -1.0


def break_totals(profile: Message) -> None:
    profile["threads"][0]["times"][0] += 5.0


def reverse_order(profile: Message) -> None:
    thread = profile["threads"][0]
    last = len(thread["children"]) - 1
    thread["children"].reverse()
    for node in [thread, *thread["children"]]:
        node["children_refs"] = [last - ref for ref in node["children_refs"]]


def repeat_row(profile: Message) -> None:
    thread = profile["threads"][1]
    sine, run = thread["children"]
    thread["children"] = [dict(sine, times=[0.0, 0.0]), sine, run]
    run["children_refs"], thread["children_refs"] = [0, 1], [2]


def swap_windows(profile: Message) -> None:
    profile["time_windows"].reverse()


def age_version(profile: Message) -> None:
    profile["metadata"]["platform_metadata"]["spark_version"] = 1


FAULTS: list[tuple[str, Callable[[Message], None]]] = [
    ("rule 1: metadata missing", remove_metadata),
    ("rule 2: not UTF-8", spoil_method),
    ("rule 2: not UTF-8", spoil_map_key),
    ("rule 3: an int64 past 2.53", enlarge_start),
    ("rule 3: an int64 past 2.53", enlarge_window),
    ("rule 4: child index .* out of range", point_nowhere),
    ("rule 4: child index -1 out of range", point_before),
    ("rule 4: node 0 has 2 parents", add_parent),
    ("rule 4: node .* has 2 parents", make_cycle),
    ("rule 4: node .* has 0 parents", forget_roots),
    ("rule 5: window .* without statistics", remove_statistics),
    *(
        (f"rule 6: platform_statistics without {re.escape(path)}", without(path))
        for path in sparkcheck.WIDGETS
    ),
    ("rule 6: .*physical", without("system_statistics.memory")),
    ("rule 6: .*heap", without("platform_statistics.memory")),
    *(
        (f"rule 7: system_statistics without system_statistics.{part}", without_information(part))
        for part in ("os", "cpu", "java")
    ),
    ("rule 7: extra_platform_metadata.* is not JSON", write_plain_text),
    ("rule 7: extra_platform_metadata.* is not JSON", write_not_a_number),
    ("rule 7: server_configurations.* is not JSON", write_plain_configuration),
    ("rule 8: 513 nodes deep", stack_up),
    ("rule 9: a node without times", empty_thread_times),
    ("rule 9: a node without times", empty_node_times),
    ("times: 1 values for 2 windows", drop_a_time),
    ("times: not a number or negative", write_nan),
    ("times: not a number or negative", write_negative),
    ("totals: ", break_totals),
    ("order: ", reverse_order),
    ("siblings: ", repeat_row),
    ("windows: not ascending", swap_windows),
    ("platform: an old version", age_version),
]


@pytest.mark.parametrize(
    ("rule", "fault"), FAULTS, ids=[f"{i}-{fault.__name__}" for i, (_, fault) in enumerate(FAULTS)]
)
def test_spark_fault_is_named(files: Files, rule: str, fault: Callable[[Message], None]) -> None:
    profile = files.spark("normal")
    assert sparkcheck.check(sparkcheck.dump(profile)) == []
    fault(profile)
    violations = sparkcheck.check(sparkcheck.dump(profile))
    assert any(re.match(rule, violation) for violation in violations), violations


def test_spark_complete_statistics_are_accepted(files: Files) -> None:
    profile = files.spark("normal")
    widgets_of(profile)
    assert sparkcheck.check(sparkcheck.dump(profile)) == []


def test_spark_gzip_is_named(files: Files) -> None:
    packed = gzip.compress(files.read("normal", "sparkprofile"))
    assert sparkcheck.check(packed) == ["rule 4: the file is gzip, not a bare message"]


def test_spark_cut_short_is_named(files: Files) -> None:
    data = files.read("normal", "sparkprofile")
    assert sparkcheck.check(data[:-3])[0].startswith("unreadable")
