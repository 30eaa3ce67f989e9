# SPDX-License-Identifier: Apache-2.0
"""Subinterpreters: their CPU is there, under their own name for what is not known, and all goes on.

Each has a sys.monitoring of its own. Pyrometer attaches to the main one, whoever calls.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import collapsed
import pytest
from conftest import Python

PROGRAMS = Path(__file__).with_name("programs")
REASON = "ran in a subinterpreter (or made no call yet): Python frames not followed"


def run(python: Python, program: str, *arguments: object) -> str:
    done = python.run("-Xfaulthandler", PROGRAMS / program, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def read(folder: Path) -> tuple[dict[str, Any], list[collapsed.Stack]]:
    summary = json.loads((folder / "profile.json").read_text())
    return summary, collapsed.read(folder / "profile.collapsed")


def seconds(stacks: list[collapsed.Stack], thread: str, leaf: str) -> float:
    """CPU of a thread whose innermost Python frame has that name."""
    found = [s for s in stacks if s.thread == thread and s.python[-1:] == (leaf,)]
    return sum(stack.weight for stack in found) / 1e6


def test_cpu_of_subinterpreters(python: Python, tmp_path: Path) -> None:
    run(python, "sub_burn.py", tmp_path)
    summary, stacks = read(tmp_path)
    diagnostics = summary["diagnostics"]
    assert summary["python"]["state"] == "attributed"
    assert diagnostics["boundary_misses"] <= 2  # before all tables are there, marks are not
    assert diagnostics["resyncs"] == 0
    threads = {thread["name"]: thread for thread in summary["threads"]}
    for name in ("guest-0", "guest-1", "MainThread"):
        assert threads[name]["reason"] == REASON
        # What runs there stands below the frames that entered it, and above none of them.
        assert seconds(stacks, name, "sub_interpreters.execute") > 0.2
        assert seconds(stacks, name, "__main__.burn") > 0.15
    assert not any("sub_" in name for s in stacks for name in s.python if ".sub_" in name)
    for stack in stacks:
        if "sub_interpreters.execute" in stack.names:
            assert "__main__.back" not in stack.names
            assert stack.python[-1] == "sub_interpreters.execute"
    assert diagnostics["samples_in_subinterpreters"] > 50  # of about 225, on a free machine
    unsampled = {row["name"]: row["reason"] for row in diagnostics["threads_unsampled"]}
    assert unsampled == {"guest-0": REASON, "guest-1": REASON, "MainThread": REASON}
    total = sum(stack.weight for stack in stacks) / 1e6
    assert total == pytest.approx(sum(t["cpu_s"] for t in summary["threads"]), rel=0.005)


def test_sessions_while_subinterpreters_come_and_go(python: Python, tmp_path: Path) -> None:
    sessions, ended = run(python, "sub_cycles.py", 3, tmp_path).split()
    assert int(sessions) >= 5
    assert int(ended) >= 3


@pytest.mark.parametrize("held", ["free", "held"])
@pytest.mark.parametrize("gil", ["shared", "own"])
def test_start_in_a_subinterpreter(python: Python, tmp_path: Path, gil: str, held: str) -> None:
    """It attaches to the main interpreter, and everything else can be asked from there too."""
    if python.version.startswith("3.12") and gil == "own":
        pytest.skip("3.12 has no ctypes in a subinterpreter with its own GIL")
    run(python, "sub_start.py", gil, held, tmp_path)
    summary, stacks = read(tmp_path)
    assert summary["python"]["state"] == "attributed"
    assert summary["diagnostics"]["resyncs"] == 0
    assert seconds(stacks, "guest", "__main__.burn") > 0.15
    assert seconds(stacks, "MainThread", "__main__.burn") > 0.05
    (guest,) = (thread for thread in summary["threads"] if thread["name"] == "guest")
    assert guest["reason"] == REASON
    burning = {s.python for s in stacks if s.thread == "guest" and "__main__.burn" in s.names}
    assert {names[-3:] for names in burning} == {
        ("__main__.guest", "__main__.back", "__main__.burn")
    }


def test_armed_program_makes_subinterpreters(python: Python, tmp_path: Path) -> None:
    """Each runs site, and so our .pth; only the program itself is profiled, once."""
    program = tmp_path / "program.py"
    code = (
        "import os, sys\n"
        "print('PYROMETER_RUN' in os.environ, [n for n in sys.modules if 'pyrometer' in n])\n"
    )
    program.write_text(
        f"import sys\nsys.path.append({str(PROGRAMS)!r})\nimport sub_interpreters\n"
        f"for shared in (False, True): sub_interpreters.run({code!r}, shared_gil=shared)\n"
        "print('end')\n"
    )
    done = python.profile("-o", tmp_path / "profile.json", program)
    assert (done.returncode, done.stdout) == (0, "False []\nFalse []\nend\n")
    assert done.stderr.count("pyrometer: ") == 1
    assert json.loads((tmp_path / "profile.json").read_text())["python"]["state"] == "attributed"
