# SPDX-License-Identifier: Apache-2.0
"""Every odd view as .pb.gz, .collapsed and .json, read by readers of our own and by pprof.

test_format_spark.py does the same for .sparkprofile.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pprofcheck
import pytest
from formatfiles import VIEWS, Files, files, non_zero

__all__ = ["files"]

SECONDS_FOR_LARGE = 1.0  # CPU, each format, 111,110 nodes x 10 windows


# pprof


@pytest.mark.parametrize("view", VIEWS)
def test_pprof_is_accepted(files: Files, view: str) -> None:
    assert pprofcheck.check(files.read(view, "pb.gz")) == []


@pytest.mark.parametrize("view", VIEWS)
def test_pprof_holds_the_truth(files: Files, view: str) -> None:
    profile, truth = files.pprof(view), files.truth(view)
    assert profile.sample_types == [("samples", "count"), ("cpu", "nanoseconds")]
    assert profile.default_sample_type == "cpu"
    assert profile.period_type == ("cpu", "nanoseconds")
    threads = {t["tid"]: [0, 0] for t in truth["threads"]}
    functions: dict[Any, int] = {}
    for sample in profile.samples:
        cpu = threads[int(sample.labels["tid"])]
        cpu[0] += sample.values[1]
        cpu[1] += sample.values[0]
        leaf = sample.functions[0]
        functions[leaf] = functions.get(leaf, 0) + sample.values[1]
    assert {tid: cpu for tid, (cpu, _) in threads.items()} == {
        t["tid"]: t["cpu_ns"] for t in truth["threads"]
    }
    assert non_zero(functions.values()) == non_zero(truth["self_ns"])


@pytest.mark.parametrize("view", ["normal", "threads", "deep300"])
def test_pprof_samples_add_up_by_thread(files: Files, view: str) -> None:
    counts: dict[Any, int] = {}
    for sample in files.pprof(view).samples:
        tid = sample.labels["tid"]
        counts[tid] = counts.get(tid, 0) + sample.values[0]
        assert (sample.values[0] > 0) == (sample.stack != ["(unsampled)"])
    stacks = dict.fromkeys(counts, 0)
    for sample in files.pprof(view).samples:
        stacks[sample.labels["tid"]] += sample.stack != ["(unsampled)"]
    wanted = {t["tid"]: t["samples"] for t in files.truth(view)["threads"] if t["tid"] in counts}
    # A stack had at least one sample; more stacks than samples happens in synthetic views only.
    assert counts == {tid: max(n, stacks[tid]) for tid, n in wanted.items()}


def test_pprof_details(files: Files) -> None:
    profile = files.pprof("normal")
    heaviest = max(profile.samples, key=lambda sample: sample.values[1])
    assert heaviest.stack == ["pkg.work.Engine.run", "__main__.<module>"]
    assert heaviest.labels == {"thread": "MainThread", "tid": 71}
    run = pprofcheck.Function("pkg.work.Engine.run", "Engine.run", "pkg/work.py", 88)
    assert heaviest.functions[0] == run
    sine = next(sample for sample in profile.samples if sample.stack[0] == "libm.so.6!sin")
    assert sine.functions[0] == pprofcheck.Function("libm.so.6!sin", "sin", "", 0)
    assert sine.mappings[0] == profile.mappings[0]
    assert profile.mappings[0].filename == "/usr/lib/libm.so.6"
    assert profile.mappings[0].build_id == "0123456789abcdef"
    assert profile.mappings[0].has_functions
    assert profile.period == 10_000_000
    assert profile.duration_nanos == 120_000_000_000
    assert profile.time_nanos == files.truth("normal")["windows"][0] * 60_000_000_000
    assert len(profile.comments) == 1
    assert "37 samples, 3 lost" in profile.comments[0]


def test_pprof_keeps_deep_stacks_whole(files: Files) -> None:
    stacks = [sample.stack for sample in files.pprof("deep1800").samples]
    assert max(map(len, stacks)) == 1800
    assert {stack[-1] for stack in stacks} == {"__main__.<module>"}


@pytest.mark.parametrize("view", VIEWS)
def test_go_reads_pprof(files: Files, view: str) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    path = files.folder / f"{view}.pb.gz"
    run = subprocess.run(
        [go, "tool", "pprof", "-top", path], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "Type: cpu" in run.stdout
    if view == "normal":
        assert re.search(r"100ms .* 345ms .* pkg\.work\.Engine\.run$", run.stdout, re.M)


# Collapsed


@pytest.mark.parametrize("view", VIEWS)
def test_collapsed_loses_nothing(files: Files, view: str) -> None:
    lines, truth = files.collapsed(view), files.truth(view)
    assert all(weight > 0 for _, weight in lines)
    assert sum(weight for _, weight in lines) == truth["cpu_ns"] // 1000
    threads = [t for t in truth["threads"] if t["cpu_ns"] >= 1000]
    weights: dict[str, int] = {}
    for stack, weight in lines:
        weights[stack[0]] = weights.get(stack[0], 0) + weight
    assert list(weights.values()) == pytest.approx([t["cpu_ns"] / 1000 for t in threads], abs=1)


def test_collapsed_lines(files: Files) -> None:
    lines = files.collapsed("normal")
    run = "pkg.work.Engine.run (pkg/work.py:88)"
    assert (["MainThread", "__main__.<module> (app.py:1)", run], 100_000) in lines
    assert (["worker (#72)", run, "libm.so.6!sin"], 72_000) in lines
    assert (["MainThread", "(unsampled)"], 7_000) in lines


def test_separators_and_breaks_in_names_are_replaced(files: Files) -> None:
    lines = files.collapsed("bytes")
    assert [len(stack) for stack, _ in lines] == [3, 2, 2]
    assert lines[0][0][0] == "t:\N{REPLACEMENT CHARACTER} "
    assert lines[1][0][1].startswith("caf\xe9.\u6e29\u5ea6")
    for ending in ("collapsed", "json"):
        text = files.read("bytes", ending).decode("utf-8")
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", text)


# JSON

KEYS = (
    "pyrometer pid start seconds python cpu_s sampled_s overhead_pct threads functions diagnostics"
)
FUNCTION_KEYS = "name file line category source self_s total_s calls calls_exact"


@pytest.mark.parametrize("view", VIEWS)
def test_json_has_the_keys_of_the_design(files: Files, view: str) -> None:
    document = files.json(view)
    assert list(document) == KEYS.split()
    assert list(document["python"]) == ["version", "free_threaded", "state", "reason"]
    for thread in document["threads"]:
        assert list(thread) == ["name", "tid", "cpu_s", "sampled_s", "reason"]
    for function in document["functions"]:
        assert list(function) == FUNCTION_KEYS.split()


@pytest.mark.parametrize("view", VIEWS)
def test_json_holds_the_truth(files: Files, view: str) -> None:
    document, truth = files.json(view), files.truth(view)
    selfs = [function["self_s"] for function in document["functions"]]
    assert selfs == sorted(selfs, reverse=True)
    assert sorted(selfs) == pytest.approx(sorted(ns / 1e9 for ns in truth["self_ns"]), rel=1e-12)
    assert document["cpu_s"] == pytest.approx(truth["cpu_ns"] / 1e9, rel=1e-12)
    assert [t["tid"] for t in document["threads"]] == [t["tid"] for t in truth["threads"]]


def test_json_functions(files: Files) -> None:
    document = files.json("normal")
    functions = {function["name"]: function for function in document["functions"]}
    assert functions["pkg.work.Engine.run (pkg/work.py:88)"] == {
        "name": "pkg.work.Engine.run (pkg/work.py:88)",
        "file": "pkg/work.py",
        "line": 88,
        "category": "application",
        "source": "pkg",
        "self_s": 0.1,
        "total_s": 0.345,
        "calls": 3,
        "calls_exact": True,
    }
    assert functions["plug.a.tick (plug/a.py:5)"]["calls_exact"] is False
    native = functions["libm.so.6!sin"]
    assert (native["calls"], native["line"], native["file"]) == (None, 0, "/usr/lib/libm.so.6")
    assert functions["[pyrometer]"]["calls"] is None
    assert document["python"] == {
        "version": "3.12.1",
        "free_threaded": False,
        "state": "attributed",
        "reason": "",
    }


def test_json_says_why(files: Files) -> None:
    python = files.json("nothing")["python"]
    assert (python["state"], python["reason"]) == ("absent", "no interpreter in this process")
    reasons = [thread["reason"] for thread in files.json("threads")["threads"]]
    assert [reason for reason in reasons if reason] == ["no CPU timer: RLIMIT_SIGPENDING"]
    assert files.json("numbers")["overhead_pct"] == 0
    assert files.json("empty")["functions"] == []


# Time


def test_time_grows_with_the_nodes_only(files: Files) -> None:
    found = re.findall(r"^timing large (\S+) ([0-9.]+) s", files.output, re.M)
    assert len(found) == 4
    slow = {ending: float(seconds) for ending, seconds in found}
    assert max(slow.values()) < SECONDS_FOR_LARGE, slow
