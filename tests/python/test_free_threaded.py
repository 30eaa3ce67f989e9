# SPDX-License-Identifier: Apache-2.0
"""Threads and sessions at the same time, with the GIL and without it.

Nothing here depends on how fast the machine is: each program knows the truth by itself,
and prints what it found as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import collapsed
import pytest
from conftest import Python

pytestmark = pytest.mark.long

PROGRAMS = Path(__file__).with_name("programs")
NO_GIL = "import sysconfig; print(bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"


def has_gil(python: Python) -> bool:
    return "True" not in python.run("-c", NO_GIL).stdout


def run(python: Python, program: str, *arguments: object) -> dict[str, Any]:
    """What a program that starts sessions itself printed."""
    done = python.run("-W", "ignore", PROGRAMS / program, *arguments)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    return dict(json.loads(done.stdout))


def profile(
    python: Python, folder: Path, program: str, *arguments: object
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a program printed, and the summary of its profile."""
    summary = folder / "summary.json"
    done = python.profile(
        *("-o", summary, "--rate", 250, "--quiet"), PROGRAMS / program, *arguments
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)), dict(json.loads(summary.read_text()))


def test_four_threads_get_equal_shares(python: Python, tmp_path: Path) -> None:
    truth, summary = profile(python, tmp_path, "four_equal.py", 1.0)
    rows = {row["name"]: row for row in summary["threads"]}
    sampled = {name: rows[name]["sampled_s"] for name in truth["threads"]}
    for name, seconds in truth["threads"].items():
        share = sampled[name] / sum(sampled.values())
        assert share == pytest.approx(0.25, abs=0.02), sampled
        assert rows[name]["cpu_s"] == pytest.approx(seconds, rel=0.03)
        (function,) = (
            row
            for row in summary["functions"]
            if collapsed.name_of(row["name"]) == f"__main__.{name}"
        )
        assert function["total_s"] == pytest.approx(sampled[name], rel=0.05)
    own = summary["diagnostics"]["overhead"]["collector_s"]
    together = sum(row["cpu_s"] for row in summary["threads"]) + own
    assert together == pytest.approx(summary["cpu_s"], rel=0.03)
    assert summary["cpu_s"] >= truth["process"] * 0.97


def test_short_threads_add_up(python: Python, tmp_path: Path) -> None:
    truth, summary = profile(python, tmp_path, "short_threads.py", 80)
    short = [row for row in summary["threads"] if row["name"] == "short"]
    assert len(short) == truth["threads"]
    assert sum(row["cpu_s"] for row in short) == pytest.approx(truth["used"], rel=0.03)
    own = summary["diagnostics"]["overhead"]["collector_s"]
    together = sum(row["cpu_s"] for row in summary["threads"]) + own
    assert together == pytest.approx(summary["cpu_s"], rel=0.03)


def test_one_session_at_a_time(python: Python) -> None:
    found = run(python, "session_storm.py", 4, 64, 8)
    assert found["faults"] == []
    assert found["sessions"] >= 20
    assert found["refused"] > 0
    assert found["checked"] >= 5
    assert found["signals"] > 0


def test_start_while_threads_recurse(python: Python) -> None:
    found = run(python, "session_recursion.py", 25, 16)
    assert found["mixed"] == []
    assert found["stacks"] > 0


@pytest.mark.parametrize("manner", ["calls", "silent"])
def test_nothing_stale_in_a_second_session(python: Python, tmp_path: Path, manner: str) -> None:
    done = python.run(PROGRAMS / "session_two.py", tmp_path, manner)
    assert done.returncode == 0, done.stderr
    first, second = (
        {name for stack in collapsed.read(tmp_path / f"{name}.collapsed") for name in stack.python}
        for name in ("first", "second")
    )
    assert not first & {"__main__.other", "__main__.spin2"}
    assert not second & {"__main__.outer", "__main__.spin"}
    assert {"__main__.outer", "__main__.spin"} <= first
    assert {"__main__.other", "__main__.spin2"} <= second


def test_many_sessions_leave_nothing(python: Python) -> None:
    found = run(python, "session_cycles.py", 40, 2)
    grown = found["memory_late"] - found["memory_early"]
    assert grown < 2 << 20, found
    assert found["residue"] == []


def test_forks_between_sessions(python: Python) -> None:
    if not has_gil(python):
        pytest.skip(
            "CPython's own: a fork without a GIL while another thread is in sys.monitoring "
            "leaves the child's stop-the-world lock held"
        )
    assert run(python, "session_forks.py", 12)["faults"] == []
