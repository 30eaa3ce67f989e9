# SPDX-License-Identifier: Apache-2.0
"""Held under a budget: fewer events, the same shares, and every estimate marked as one."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import collapsed
import pytest
import rows
from conftest import Python
from service import armed, write

pytestmark = pytest.mark.usual_pythons

PROGRAMS = Path(__file__).with_name("programs")


CALLS = """
def tiny(i):
    return i
def call(seconds):
    end = time.time() + seconds
    while time.time() < end:
        for i in range(2000):
            tiny(i)
"""


@dataclass(frozen=True)
class Result:
    true: dict[str, Any]
    summary: dict[str, Any]
    stacks: list[collapsed.Stack]

    @property
    def diagnostics(self) -> dict[str, Any]:
        return dict(self.summary["diagnostics"])

    def function(self, name: str) -> dict[str, Any]:
        found = [f for f in self.summary["functions"] if f["name"].startswith(f"{name} (")]
        assert len(found) == 1, name
        return dict(found[0])

    def share(self, name: str) -> float:
        """Of the CPU in Python functions, on the stack."""
        python = [stack for stack in self.stacks if stack.python]
        found = sum(stack.weight for stack in python if name in stack.python)
        return found / sum(stack.weight for stack in python)


def run(python: Python, folder: Path, load: str, seconds: float, budget: str) -> Result:
    done = python.run(PROGRAMS / "budget_load.py", load, seconds, budget, folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    summary = json.loads((folder / "profile.json").read_text(encoding="utf-8"))
    return Result(json.loads(done.stdout), summary, collapsed.read(folder / "profile.collapsed"))


@pytest.mark.every_python
def test_what_calls_a_lot_is_held_under_the_budget(python: Python, tmp_path: Path) -> None:
    found = run(python, tmp_path, "pair", 6, "3")
    diagnostics = found.diagnostics
    assert 0 < diagnostics["events_share"] < 0.3
    assert diagnostics["event_bursts"] >= 3
    assert diagnostics["samples_estimated"] > diagnostics["samples_attributed"] / 2
    assert found.summary["overhead_pct"] < 5
    # Each stack is one that was: the whole chain, and nothing but what calls what.
    python_stacks = {stack.python for stack in found.stacks if stack.python}
    root = ("__main__.<module>", "__main__.main", "__main__.pair")
    assert {stack[:3] for stack in python_stacks if len(stack) >= 3} == {root}
    for way in ("light", "heavy"):
        assert (*root, f"__main__.{way}", "__main__.tiny") in python_stacks
    tiny = found.function("__main__.tiny")
    error = tiny["self_error_s"] / found.summary["sampled_s"]  # the interval of 19 in 20
    assert found.share("__main__.heavy") == pytest.approx(0.75, abs=2 * error)
    assert tiny["calls_exact"] is False
    assert tiny["calls"] == pytest.approx(found.true["calls"], rel=0.25)
    assert 0 < tiny["self_error_s"] < tiny["self_s"]
    balance = diagnostics["stored"] + sum(diagnostics["lost"].values())
    assert diagnostics["signals"] == balance


def test_few_calls_are_all_counted(python: Python, tmp_path: Path) -> None:
    found = run(python, tmp_path, "quiet", 2, "3")
    assert found.diagnostics["events_share"] == 1
    assert found.diagnostics["samples_estimated"] == 0
    counted = found.function("__main__.counted")
    assert (counted["calls"], counted["calls_exact"]) == (found.true["calls"], True)
    assert "self_error_s" not in counted


def test_without_a_budget_all_calls_are_counted(python: Python, tmp_path: Path) -> None:
    found = run(python, tmp_path, "pair", 1, "off")
    assert found.diagnostics["events_share"] == 1
    tiny = found.function("__main__.tiny")
    assert (tiny["calls"], tiny["calls_exact"]) == (found.true["calls"], True)


@pytest.mark.every_python
def test_threads_keep_to_themselves(python: Python, tmp_path: Path) -> None:
    found = run(python, tmp_path, "threads", 6, "3")
    assert found.diagnostics["samples_estimated"] > 0
    for stack in found.stacks:
        own = {"left": "__main__.right", "right": "__main__.left"}.get(stack.thread)
        assert own not in stack.python, stack
    for name in ("left", "right"):
        weight = sum(stack.weight for stack in found.stacks if stack.thread == name)
        named = sum(s.weight for s in found.stacks if f"__main__.{name}" in s.python)
        assert named / weight > 0.75, name  # but for what came before its first burst


def test_services_have_a_budget_and_say_so(python: Python, tmp_path: Path) -> None:
    program = write(tmp_path, CALLS + "call(4.4)\n")
    done = python.run(program, env=armed(every=2))
    assert done.returncode == 0, done.stderr
    last = rows.read(done.stderr)[1]
    python_rows = [row for row in last.functions if row[0].startswith("__main__.")]
    assert python_rows, done.stderr
    assert all(row[3].startswith("~") for row in python_rows)
    assert "[profile] estimates: calls were counted in " in done.stderr


@pytest.mark.every_python
def test_other_tools_see_nothing_of_it(python: Python, tmp_path: Path) -> None:
    """Their events are neither switched off nor on again, nor told twice."""
    program = tmp_path / "beside.py"
    program.write_text(
        textwrap.dedent("""
        import sys, time, pyrometer
        monitoring, seen = sys.monitoring, {"start": 0, "line": 0}
        def tiny(i):
            return i
        def start(code, offset):
            seen["start"] += code is tiny.__code__
        def line(code, number):
            seen["line"] += code is tiny.__code__
            return monitoring.DISABLE
        monitoring.use_tool_id(1, "beside")
        monitoring.register_callback(1, monitoring.events.PY_START, start)
        monitoring.register_callback(1, monitoring.events.LINE, line)
        monitoring.set_events(1, monitoring.events.PY_START | monitoring.events.LINE)
        pyrometer.start(budget=1)
        calls, end = 0, time.process_time() + 4
        while time.process_time() < end:
            for i in range(1000):
                tiny(i)
            calls += 1000
        found = pyrometer.snapshot()
        pyrometer.stop()
        assert found["event_bursts"] > 1, found
        assert seen == {"start": calls, "line": 1}, (seen, calls)
        """),
        encoding="utf-8",
    )
    done = python.run(program)
    assert (done.returncode, done.stderr) == (0, "")


def test_forked_between_bursts(python: Python, tmp_path: Path) -> None:
    """A child starts by itself also where no event of its parent's is on."""
    program = write(
        tmp_path,
        CALLS
        + textwrap.dedent("""
        import os
        def child():
            call(2.5)
        call(2)
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                child()
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        """),
    )
    done = python.run(program, "-W", "ignore", env=armed(every=1, budget=1))
    assert done.returncode == 0, done.stderr
    reports = rows.read(done.stderr)
    assert len({report.pid for report in reports}) == 4, done.stderr


@pytest.mark.every_python
def test_it_comes_and_goes_with_the_session(python: Python, tmp_path: Path) -> None:
    """Also while its thread waits for the GIL, and at the end of the interpreter."""
    program = tmp_path / "cycles.py"
    program.write_text(
        textwrap.dedent("""
        import threading, pyrometer
        def tiny(i):
            return i
        def call():
            while not stop:
                for i in range(1000):
                    tiny(i)
        stop = False
        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for cycle in range(60):
            pyrometer.start(budget=0.5)
            threading.Event().wait(0.001 * (cycle % 40))
            pyrometer.stop()
        pyrometer.start(budget=0.5)
        stop = True
        for thread in threads:
            thread.join()
        """),
        encoding="utf-8",
    )
    done = python.run(program)
    assert (done.returncode, done.stderr) == (0, "")
