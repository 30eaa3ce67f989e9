# SPDX-License-Identifier: Apache-2.0
"""Beside other tools: neither gets in the other's way, and a lost place is said, once."""

from __future__ import annotations

import json
import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import collapsed
import extras
import pytest
from conftest import Python

PROGRAMS = Path(__file__).with_name("programs")
COVERAGE = "coverage==7.17.5"
JIT_REASON = "CPython's JIT is on"
LOAD_CALLS = {  # of tool_load.work(1), averaged over three rounds
    "counted": 2,
    "leaf": 21 + 2 / 3,
    "caught": 1,
    "fails": 1,
    "Item.__init__": 5,
    "Item.__lt__": 4,
    "work.<locals>.<lambda>": 3,
}


@dataclass(frozen=True)
class Written:
    """What a program's own calls of the API have written."""

    summary: dict[str, Any]
    stacks: list[collapsed.Stack]

    @classmethod
    def read(cls, folder: Path) -> Written:
        summary = json.loads((folder / "profile.json").read_text(encoding="utf-8"))
        return cls(summary, collapsed.read(folder / "profile.collapsed"))

    @property
    def diagnostics(self) -> dict[str, Any]:
        return dict(self.summary["diagnostics"])

    def seconds(self, thread: str, name: str) -> float:
        """CPU of a thread during which a frame of that name was on its stack."""
        found = [s for s in self.stacks if s.thread == thread and name in s.names]
        return sum(stack.weight for stack in found) / 1e6

    def threads_seconds(self) -> float:
        return float(sum(thread["cpu_s"] for thread in self.summary["threads"]))

    def native_seconds(self) -> float:
        return sum(stack.weight for stack in self.stacks if not stack.python) / 1e6


@pytest.mark.parametrize("how", ["api", "run"])
def test_all_tool_ids_taken(python: Python, tmp_path: Path, how: str) -> None:
    done = python.run(PROGRAMS / "tool_taken.py", how, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{[f'tenant-{n}' for n in range(6)]}\n"
    written = Written.read(tmp_path)
    state = written.summary["python"]
    assert state["state"] == "native-only"
    for number in range(6):
        assert f"'tenant-{number}' holds {number}" in state["reason"]
    assert written.diagnostics["reason"] == state["reason"]
    assert written.diagnostics["stored"] > 50
    assert written.native_seconds() == pytest.approx(written.threads_seconds(), rel=0.005)
    assert any(len(stack.frames) > 5 for stack in written.stacks)
    if how == "api":
        assert done.stderr == ""
    else:
        lines = [line for line in done.stderr.splitlines() if state["reason"] in line]
        assert lines == [f"no Python frames, native ones only: {state['reason']}"]


@pytest.mark.parametrize("how", ["free", "take", "zero", "none"])
def test_tool_id_taken_away_in_mid_run(python: Python, tmp_path: Path, how: str) -> None:
    done = python.run(PROGRAMS / "tool_lost.py", how, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    seen, again = done.stdout.splitlines()
    if how == "take":  # the next tool has its events, all of them and no other
        tools = [None, None, None, None, "tenant", None]
        assert seen == f"{tools} {[0] * 6} 1000"
    else:
        assert seen == f"{[None] * 6} {[0] * 6} 0"
    assert again == "attributed"

    written = Written.read(tmp_path)
    state = written.summary["python"]
    assert state["state"] == "native-only"
    assert state["reason"].startswith("the program took our sys.monitoring tool id away (found ")
    assert written.diagnostics["tool_id"] == -1
    # Before the loss all is there. After it a stack that nothing keeps true is not shown:
    # at once where CPython drops our callbacks, else at the next look, 50 ms apart.
    assert 0.15 < written.seconds("MainThread", "__main__.before") < 0.35
    assert written.seconds("MainThread", "__main__.deep") < 0.2 + 0.2
    assert written.seconds("worker", "__main__.leave") < 0.3 + 0.2
    assert written.native_seconds() > 0.4
    booked = sum(stack.weight for stack in written.stacks) / 1e6
    assert booked == pytest.approx(written.threads_seconds(), rel=0.005)


def test_loss_is_told_in_the_table(python: Python, tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "end = time.thread_time() + 0.3\n"
        "while time.thread_time() < end: sum(range(200))\n"
        "for n in range(6): sys.monitoring.free_tool_id(n)\n"
        "end = time.thread_time() + 0.3\n"
        "while time.thread_time() < end: sum(range(200))\n"
        "print('done')\n"
    )
    done = python.profile("-o", tmp_path / "profile.json", "-c", code)
    assert (done.returncode, done.stdout) == (0, "done\n")
    lines = [line for line in done.stderr.splitlines() if "tool id" in line]
    assert len(lines) == 1
    assert lines[0].startswith("Python frames at first, then native ones only: the program took")


def test_snapshot_tells_of_a_loss_at_once(python: Python) -> None:
    code = (
        "import sys, pyrometer\n"
        "pyrometer.start()\n"
        "before = pyrometer.snapshot()\n"
        "for n in range(6): sys.monitoring.free_tool_id(n)\n"
        "after = pyrometer.snapshot()\n"
        "print(before['state'], before['reason'] == '', after['state'], after['reason'] != '')\n"
    )
    assert python.run("-c", code).stdout == "attributed True native-only True\n"


def test_nothing_comes_to_the_next_tenant(python: Python) -> None:
    """After stop the id's new holder gets no event of ours, on any kind of event."""
    code = (
        "import sys, pyrometer\n"
        "def f(n): return f(n - 1) if n else 0\n"
        "pyrometer.start()\n"
        "tool = pyrometer.snapshot()['tool_id']\n"
        "f(50)\n"
        "pyrometer.stop()\n"
        "hits = []\n"
        "m = sys.monitoring\n"
        "assert m.get_tool(tool) is None and m.get_events(tool) == 0\n"
        "m.use_tool_id(tool, 'tenant')\n"
        "for bit in range(16):\n"
        "    try: old = m.register_callback(tool, 1 << bit, lambda *a: hits.append(a))\n"
        "    except ValueError: continue\n"
        "    assert old is None, (bit, old)\n"
        "f(50)\n"
        "print(len(hits))\n"
    )
    done = python.run("-c", code)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_restart_events_in_a_loop(python: Python, tmp_path: Path) -> None:
    code = (
        "import sys, threading\n"
        f"sys.path.insert(0, {str(PROGRAMS)!r})\n"
        "import pyrometer, tool_load\n"
        "stop = threading.Event()\n"
        "def restart():\n"
        "    while not stop.is_set(): sys.monitoring.restart_events()\n"
        "thread = threading.Thread(target=restart)\n"
        "pyrometer.start(rate=250)\n"
        "thread.start()\n"
        "tool_load.work(300)\n"
        "stop.set()\n"
        "thread.join()\n"
        "pyrometer.stop()\n"
        f"pyrometer.export({str(tmp_path / 'profile.json')!r})\n"
    )
    done = python.run("-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads((tmp_path / "profile.json").read_text())
    assert summary["python"]["state"] == "attributed"
    check_calls(summary, 300)


def check_calls(summary: dict[str, Any], rounds: int) -> None:
    calls = {
        collapsed.name_of(row["name"]): row["calls"]
        for row in summary["functions"]
        if row["name"].startswith("tool_load.")
    }
    for name, each in LOAD_CALLS.items():
        assert calls[f"tool_load.{name}"] == pytest.approx(each * rounds, abs=3), name


@pytest.mark.parametrize(
    "tool", ["cprofile", "settrace", "setprofile", "coverage-ctrace", "coverage-sysmon"]
)
def test_another_tool_beside_us(python: Python, tmp_path: Path, tool: str) -> None:
    """It finds with us beside it what it finds alone, and so do we."""
    environment = dict(os.environ)
    if tool.startswith("coverage-"):
        environment["PYTHONPATH"] = str(extras.folder(python, COVERAGE))
    program, profile = PROGRAMS / "tool_beside.py", tmp_path / "profile.json"
    alone = python.run(program, tool, env=environment)
    if "can't import CTracer" in alone.stderr:
        pytest.skip(f"{COVERAGE} has no C tracer for {python.version}")
    beside = python.run(program, tool, profile, env=environment)
    assert alone.returncode == 0, alone.stderr
    assert "leaf" in alone.stdout or "tool_load.py" in alone.stdout
    assert (beside.stdout, beside.stderr) == (alone.stdout, alone.stderr)
    summary = json.loads(profile.read_text())
    assert summary["python"]["state"] == "attributed"
    assert summary["diagnostics"]["resyncs"] == 0
    check_calls(summary, 200)


def has_jit(python: Python) -> bool:
    code = "import sys; print(getattr(sys, '_jit', None) is not None and sys._jit.is_available())"
    return python.run("-c", code).stdout == "True\n"


@pytest.mark.parametrize("how", ["run", "api"])
def test_with_the_jit_on(python: Python, tmp_path: Path, how: str) -> None:
    if not has_jit(python):
        pytest.skip(f"{python.version} has no JIT")
    code = (
        "import sys, time\n"
        "def f(n): return n * 3 % 7\n"
        "def work(): return sum(f(i) for i in range(20_000))\n"
        "end = time.thread_time() + 0.4\n"
        "while time.thread_time() < end: total = work()\n"
        "print(total, sys._jit.is_enabled())\n"
    )
    environment = {**os.environ, "PYTHON_JIT": "1"}
    alone = python.run("-c", code, env=environment)
    assert alone.stdout == "59997 True\n"
    report = tmp_path / "profile.json"
    if how == "run":
        done = python.profile("-o", report, "-c", code, env=environment)
        assert [JIT_REASON in line for line in done.stderr.splitlines()].count(True) == 1
    else:
        around = f"import pyrometer\nwith pyrometer.profile({str(report)!r}):\n  exec({code!r})\n"
        done = python.run("-c", around, env=environment)
        assert done.stderr == ""
    assert done.stdout == alone.stdout
    summary = json.loads(report.read_text())
    assert summary["python"]["state"] == "native-only"
    assert summary["python"]["reason"].startswith(JIT_REASON)
    assert summary["diagnostics"]["stored"] > 20
    assert summary["diagnostics"]["events"]["PY_START"] == 0


def test_with_a_jit_that_is_off(python: Python) -> None:
    """What the program puts into its environment is for its children."""
    code = (
        "import os; os.environ['PYTHON_JIT'] = '1'\n"
        "import pyrometer; pyrometer.start(); print(pyrometer.snapshot()['state'])\n"
    )
    assert python.run("-c", code).stdout == "attributed\n"
    done = python.run("-E", "-c", code.splitlines()[1], env={**os.environ, "PYTHON_JIT": "1"})
    assert done.stdout == "attributed\n"


def test_a_start_under_other_builtins(python: Python) -> None:
    """As namedtuple evaluates: nothing of the frame that we happen to be in is used by us."""
    program = """
        import builtins, pyrometer
        from pyrometer import snapshot, start, stop
        eval("start()", {"start": start, "__builtins__": {}})
        first = snapshot()["state"]
        stop()
        del builtins.sorted
        builtins.max = lambda *a: undefined
        start()
        stop()
        print(first)
    """
    done = python.run("-c", textwrap.dedent(program))
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == ("attributed\n", "")
