# SPDX-License-Identifier: Apache-2.0
"""The program's signals are the program's: taken, reset or sent, they end nothing and nobody."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import rows
from conftest import Python

BURN = """
import os, signal, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: sum(range(200))
caught = []
"""


def run(
    python: Python, folder: Path, program: str, **settings: object
) -> tuple[str, list[rows.Report], list[str]]:
    """What it printed, its reports, and what else is on standard error."""
    path = folder / "program.py"
    path.write_text(BURN + program)
    armed = json.dumps({"every": 0.5, "top": 5, **settings})
    done = python.run("-W", "ignore", path, env={**os.environ, "PYROMETER": armed})
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    others = [line for line in done.stderr.splitlines() if not line.startswith("[profile]")]
    return done.stdout.strip(), rows.read(done.stderr), others


def test_sigprof_is_free_for_the_program(python: Python, tmp_path: Path) -> None:
    program = """
signal.signal(signal.SIGPROF, lambda *_: caught.append("handler"))
burn(1.2)
os.kill(os.getpid(), signal.SIGPROF)
burn(0.1)
signal.signal(signal.SIGPROF, signal.SIG_DFL)
burn(1.2)
print(len(caught))
"""
    printed, reports, others = run(python, tmp_path, program)
    assert printed == "1"  # its own signal, and none of ours
    assert len(reports) >= 3
    assert all(report.functions for report in reports[1:3])
    assert others == []


def test_a_late_profiling_signal_ends_nothing(python: Python, tmp_path: Path) -> None:
    program = """
import pyrometer
burn(0.6)
pyrometer.stop()
os.kill(os.getpid(), signal.SIGPROF)
print("alive")
"""
    assert run(python, tmp_path, program)[0] == "alive"


@pytest.mark.parametrize("handler", ["signal.SIG_IGN", "lambda *_: caught.append(1)"])
def test_our_own_signal_taken(python: Python, tmp_path: Path, handler: str) -> None:
    """Noticed at once, and said once. A signal that was under way may come through."""
    program = f"""
import pyrometer
burn(0.3)
number = pyrometer.snapshot()["signal_number"]
signal.signal(number, {handler})
burn(1.5)
after = pyrometer.snapshot()
print(len(caught), after["signal_number"] not in (0, number), after["signal_lost"] == number)
"""
    printed, reports, others = run(python, tmp_path, program)
    count, *truths = printed.split()
    assert int(count) <= 15  # 50 ms of them
    assert truths == ["True", "True"]
    assert reports[2].functions
    assert len(others) == 1
    assert "handles signal" in others[0]


def test_workers_that_reset_their_signals(python: Python, tmp_path: Path) -> None:
    """As a pool of workers does in each child: whatever is not ignored gets its handler."""
    program = """
def give_up(number, frame): os._exit(70)
for _ in range(3):
    if os.fork() == 0:
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
            signal.signal(number, give_up)
        burn(1.2)
        os._exit(0)
print([os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(3)])
"""
    printed, reports, _ = run(python, tmp_path, program, every=0.3)
    assert printed == "[0, 0, 0]"
    assert len({report.pid for report in reports}) >= 1
