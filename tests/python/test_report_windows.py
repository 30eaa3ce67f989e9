# SPDX-License-Identifier: Apache-2.0
"""What the rows of many intervals add up to, and that no row claims more than was used."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from conftest import Python
from service import armed, write

# The program's own account: /proc's figure for the process at the end of each interval.
ACCOUNT = """
import os
def used():
    fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
"""

# Recursion, callbacks from C, generators, exceptions, threads that come and go, sleep.
MIXED = """
import json, random, re
def deep(n): return n if n == 0 else deep(n - 1) + 1
def throws(n):
    try: return throws(n - 1) if n else {}["none"]
    except KeyError: return 0
def numbers(n): yield from (i * i for i in range(n))
def mixed(seconds):
    end = time.time() + seconds
    while time.time() < end:
        deep(50); throws(10); sum(numbers(500)); hot(1000)
        sorted(range(300), key=lambda i: -i)
        json.dumps([re.sub("a+", str, "aab") for _ in range(20)], default=str)
        thread = threading.Thread(target=hot, args=(3000,)); thread.start(); thread.join()
        time.sleep(0.0005)
"""

Row = dict[str, Any]


def intervals(python: Python, folder: Path, program: str, every: float) -> list[list[Row]]:
    """The rows of each interval, the process's first."""
    settings = {"every": every, "top": 1000, "format": "json"}
    done = python.run(write(folder, program), env=armed(**settings), timeout=60)
    assert done.returncode == 0, done.stderr
    found: list[list[Row]] = []
    for row in map(json.loads, done.stderr.splitlines()):
        if row["profile"] == "process":
            found.append([])
        found[-1].append(row)
    (folder / "stdout").write_text(done.stdout)
    return found


def functions(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["profile"] == "function"]


def self_time(rows: list[Row]) -> float:
    return sum(float(row["tottime"]) for row in functions(rows))


def accounted(rows: list[Row]) -> float:
    """Functions, what fell between samples, and the profiler's own part."""
    process, threads = rows[0], filter(is_thread, rows)
    between = sum(row["cores"] - row["sampled"] for row in threads) * process["seconds"]
    return self_time(rows) + between + process["overhead_pct"] / 100 * process["cpu_s"]


def test_ten_windows_add_up(python: Python, tmp_path: Path) -> None:
    """The sum over intervals one to ten is what the process used, by /proc, in that time."""
    program = ACCOUNT + "serve(3.6)\nprint(used())\n"
    found = intervals(python, tmp_path, program, every=0.3)
    ten = found[:10]
    assert [rows[0]["window"] for rows in ten] == list(range(1, 11))
    for rows in (ten[1], ten[9]):
        assert functions(rows)[0]["name"].startswith("__main__.hot (")
        assert accounted(rows) > 0.8 * rows[0]["cpu_s"]
    kernel = sum(rows[0]["cpu_s"] for rows in ten)
    threads = sum(
        row["cores"] * rows[0]["seconds"] for rows in ten for row in rows if is_thread(row)
    )
    assert sum(map(accounted, ten)) == pytest.approx(kernel, rel=0.05)
    assert threads == pytest.approx(kernel, rel=0.02)
    # All of it, but for the start before the first interval and the one that was under way.
    seconds = sum(rows[0]["seconds"] for rows in ten)
    whole = float((tmp_path / "stdout").read_text())
    assert kernel <= whole + 0.02
    assert kernel / seconds == pytest.approx(whole / 3.7, rel=0.2)


def is_thread(row: Row) -> bool:
    return bool(row["profile"] == "thread")


def test_windows_sum_to_the_kernels_total(python: Python, tmp_path: Path) -> None:
    """Marks in the program, as near as can be to the ends of intervals one and ten."""
    program = (
        "import resource\n"
        "def cpu(): return time.process_time()\n"
        "marks = []\n"
        "def watch():\n"
        "    for _ in range(80):\n"
        "        marks.append((time.monotonic(), cpu())); serve(0.045)\n"
        "watch()\n"
        "import json; print(json.dumps(marks))\n"
    )
    found = intervals(python, tmp_path, program, every=0.3)[:10]
    marks = json.loads((tmp_path / "stdout").read_text())
    seconds = sum(rows[0]["seconds"] for rows in found[1:])
    rate = (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])
    kernel = sum(rows[0]["cpu_s"] for rows in found[1:])
    assert len(found) == 10
    assert kernel / seconds == pytest.approx(rate, rel=0.1)
    assert sum(map(accounted, found[1:])) == pytest.approx(kernel, rel=0.02)


def test_no_row_claims_too_much(python: Python, tmp_path: Path) -> None:
    found = intervals(python, tmp_path, MIXED + "mixed(3.4)\n", every=0.5)
    assert len(found) >= 6
    for process, *rows in found:
        assert 0 <= process["attributed_pct"] <= 100
        assert 0 <= process["overhead_pct"] <= 100
        assert process["cpu_s"] == pytest.approx(process["cores"] * process["seconds"], rel=1e-6)
        budget = process["cpu_s"] + 1e-6
        for row in functions(rows):
            assert 0 <= row["tottime"] <= row["cumtime"] <= budget, row
            assert row["ncalls"] is None or row["ncalls"] >= 0
        assert self_time(rows) <= budget
        threads = [row for row in rows if is_thread(row)]
        assert sum(row["cores"] for row in threads) <= process["cores"] + 1e-6
        assert all(0 <= row["sampled"] <= row["cores"] + 1e-6 for row in threads), threads


def test_intervals_are_deltas(python: Python, tmp_path: Path) -> None:
    """A function that ran in some intervals is in the rows of those and of no others."""
    program = (
        "".join(
            f"def part_{i}():\n"
            "    end = time.process_time() + 0.9\n"
            "    while time.process_time() < end: pass\n"
            for i in range(4)
        )
        + "".join(f"part_{i}()\n" for i in range(4))
        + "time.sleep(0.4)\n"
    )
    found = intervals(python, tmp_path, program, every=0.3)
    cumulated: dict[str, float] = defaultdict(float)
    for rows in found:
        mine = {row["name"].split(" ")[0]: row["cumtime"] for row in functions(rows)}
        parts = {name: time for name, time in mine.items() if "part_" in name and time > 0}
        assert len(parts) <= 2
        for name, time in parts.items():
            cumulated[name] += time
    assert len(cumulated) == 4
    most, least = max(cumulated.values()), min(cumulated.values())
    assert most < 2 * least
