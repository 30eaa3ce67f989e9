# SPDX-License-Identifier: Apache-2.0
"""The main promise: a real program in, a true profile out. Each test knows the truth by itself."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
from pathlib import Path
from typing import Any

import collapsed
import pytest
from conftest import Python

PROGRAMS = Path(__file__).with_name("programs")
ORDER = PROGRAMS / "true_order.py"


class Profile:
    """One run of `pyrometer run` and what it wrote."""

    def __init__(
        self, python: Python, folder: Path, *program: object, rate: int = 250, **options: Any
    ) -> None:
        summary, stacks = folder / "profile.json", folder / "profile.collapsed"
        self.done = python.profile(
            "-o", summary, "-o", stacks, "--rate", rate, "--quiet", *program, **options
        )
        assert self.done.returncode == 0, self.done.stderr
        self.summary: dict[str, Any] = json.loads(summary.read_text())
        self.stacks = collapsed.read(stacks)
        self.diagnostics = self.summary["diagnostics"]

    def function(self, name: str) -> dict[str, Any]:
        """The row of a Python function, by "module.qualname"."""
        (row,) = (
            row for row in self.summary["functions"] if collapsed.name_of(row["name"]) == name
        )
        return dict(row)

    def thread(self, name: str) -> dict[str, Any]:
        (row,) = (row for row in self.summary["threads"] if row["name"] == name)
        return dict(row)

    def check_balance(self) -> None:
        """No sample is unaccounted for, and no CPU."""
        d = self.diagnostics
        assert d["signals"] == d["stored"] + sum(d["lost"].values())
        assert d["samples_attributed"] + d["samples_native_only"] == d["stored"]
        booked = sum(stack.weight for stack in self.stacks) / 1e6
        cpu = sum(thread["cpu_s"] for thread in self.summary["threads"])
        assert booked == pytest.approx(cpu, rel=0.005)
        for row in self.summary["functions"]:
            assert 0 <= row["self_s"] <= row["total_s"] <= self.summary["cpu_s"] * 1.001


def test_known_split(python: Python, tmp_path: Path) -> None:
    profile = Profile(python, tmp_path, PROGRAMS / "known_split.py")
    truth = json.loads(profile.done.stdout)
    for name in ("loop_part", "sort_part", "call_part"):
        measured = profile.function(f"__main__.{name}")["total_s"] / profile.summary["sampled_s"]
        assert measured == pytest.approx(truth[name] / truth["all"], abs=0.02), name
    main = profile.thread("MainThread")
    assert main["cpu_s"] >= 4.5
    assert main["sampled_s"] == pytest.approx(main["cpu_s"], rel=0.03)
    tiny = profile.function("__main__.tiny")
    assert (tiny["calls"], tiny["calls_exact"]) == (1_000_000, True)
    assert profile.function("__main__.loop_part")["calls"] == 1
    profile.check_balance()


# What must stand on the stack between main and spin, root first. A tuple is a border
# that C code crosses: its symbols must all be there, in this order, with other C frames
# between them at most; no other Python frame may be.
TRUE_ORDER: list[str | tuple[str, ...]] = [
    "__main__.<module>",
    "__main__.main",
    ("partial_vectorcall",),
    "__main__.partial_target",
    ("list_vectorcall", "map_next"),
    "__main__.mapped",
    *["__main__.recurse"] * 60,
    ("builtin_sorted", "list_sort_impl"),
    "__main__.sort_key",
    "re.sub",
    ("pattern_subx",),
    "__main__.replace",
    "json.dumps",
    "json.encoder.JSONEncoder.encode",
    "json.encoder.JSONEncoder.iterencode",
    ("encoder_listencode_obj",),
    "__main__.default_for",
    "__main__.spin",
]


def match_order(frames: tuple[str, ...]) -> str:
    """ "" when the frames are exactly the true order, else where they first differ."""
    left = list(frames)
    for step in TRUE_ORDER:
        crossed: list[str] = []
        while left and "!" in left[0]:
            crossed.append(left.pop(0).split("!")[1])
        symbols = iter(crossed)
        wanted = step if isinstance(step, tuple) else ()
        if not all(any(symbol.startswith(want) for symbol in symbols) for want in wanted):
            return f"{step} is not among {crossed}"
        if isinstance(step, tuple):
            continue
        if crossed and step != "__main__.<module>" and frames_border(step) is None:
            return f"C frames {crossed} before {step}, which is called from Python"
        if not left or left.pop(0) != step:
            return f"{step} is not where it belongs"
    return ""


def frames_border(step: str) -> tuple[str, ...] | None:
    index = TRUE_ORDER.index(step)
    before = TRUE_ORDER[index - 1]
    return before if isinstance(before, tuple) else None


def test_true_order(python: Python, tmp_path: Path) -> None:
    profile = Profile(python, tmp_path, ORDER)
    spinning = [stack for stack in profile.stacks if "__main__.spin" in stack.names]
    assert sum(stack.weight for stack in spinning) > 1_300_000
    for stack in spinning:
        assert match_order(stack.names) == "", stack.names
    # All samples share one and the same stack down to the spin.
    assert len({stack.names[: stack.names.index("__main__.spin")] for stack in spinning}) == 1
    assert profile.diagnostics["boundary_misses"] == 0
    profile.check_balance()


def test_loads_of_four_threads(python: Python, tmp_path: Path) -> None:
    profile = Profile(python, tmp_path, PROGRAMS / "four_threads.py")
    names = json.loads(profile.done.stdout)
    seconds = [profile.thread(name)["sampled_s"] for name in names]
    unit = sum(seconds) / 15
    for measured, load in zip(seconds, (1, 2, 4, 8)):
        assert measured == pytest.approx(load * unit, abs=0.02 * sum(seconds))
        row = profile.function(f"__main__.load_{load}")
        assert row["total_s"] == pytest.approx(measured, rel=0.05)
    for stack in profile.stacks:
        loads = [name for name in stack.python if name.startswith("__main__.load_")]
        assert len(loads) <= 1
        if loads:
            load = int(loads[0].rsplit("_", 1)[1])
            assert stack.thread == names[(1, 2, 4, 8).index(load)]
    profile.check_balance()


@pytest.fixture(scope="session")
def native_pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("native") / "libnative_pool.so"
    source = PROGRAMS / "native_pool.c"
    command = ["cc", "-O2", "-shared", "-fPIC", "-pthread", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def test_native_threads(python: Python, tmp_path: Path, native_pool: Path) -> None:
    profile = Profile(python, tmp_path, PROGRAMS / "native_pool.py", native_pool)
    for number in range(4):
        thread = profile.thread(f"native-{number}")
        assert thread["cpu_s"] == pytest.approx(0.5, abs=0.05)
        # Found by scanning: at most the time until the scan is missing.
        assert thread["sampled_s"] > 0.3
        mine = [stack for stack in profile.stacks if stack.thread == f"native-{number}"]
        burnt = collapsed.share(mine, "libnative_pool.so!burn_native")
        assert burnt > 0.95 * thread["sampled_s"] / thread["cpu_s"]
        assert not any(stack.python for stack in mine)
    profile.check_balance()


def test_pure_python_is_complete(python: Python, tmp_path: Path) -> None:
    profile = Profile(python, tmp_path, PROGRAMS / "known_split.py")
    d = profile.diagnostics
    assert d["samples_complete"] >= 0.995 * d["stored"]
    assert d["samples_attributed"] >= 0.97 * d["stored"]


def test_numpy_mix_is_complete(python: Python, tmp_path: Path) -> None:
    profile = Profile(python, tmp_path, PROGRAMS / "numpy_mix.py", rate=250)
    d = profile.diagnostics
    assert d["stored"] > 300
    assert d["samples_complete"] >= 0.99 * d["stored"]
    products = [stack for stack in profile.stacks if "__main__.products" in stack.names]
    # The kernels have no CFI; they stand below the function that calls them all the same.
    assert sum(stack.weight for stack in products if "openblas" in stack.frames[-1]) > 0
    profile.check_balance()


def test_process_timer_when_the_kernel_has_no_more(python: Python, tmp_path: Path) -> None:
    def no_timers() -> None:
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0))

    # Root's processes share the limit's count, so zero refuses every thread's timer; then
    # the process timer is refused too, and the run must go on and say so.
    profile = Profile(python, tmp_path, PROGRAMS / "four_threads.py", preexec_fn=no_timers)
    d = profile.diagnostics
    assert d["timers_refused"] > 0
    reasons = {row["reason"] for row in d["threads_unsampled"]}
    assert d["stored"] > 0 or reasons == {"no CPU timer could be made"}
    assert profile.thread("eight")["cpu_s"] == pytest.approx(3.2, rel=0.1)
    profile.check_balance()


def test_few_timers(python: Python, tmp_path: Path) -> None:
    """EAGAIN for some threads only: the process timer serves those."""

    def few_timers() -> None:
        # In a user namespace of its own the process shares the limit with nobody.
        new_user_namespace = 0x10000000
        if ctypes.CDLL(None).unshare(new_user_namespace) != 0:
            os._exit(77)
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (3, 3))

    profile = Profile(python, tmp_path, PROGRAMS / "four_threads.py", preexec_fn=few_timers)
    d = profile.diagnostics
    assert d["timer"] == "process"
    assert d["timers_refused"] >= 2
    assert d["threads_unsampled"] == []
    for load in (1, 2, 4, 8):
        row = profile.function(f"__main__.load_{load}")
        assert row["total_s"] == pytest.approx(0.4 * load, rel=0.25)
    profile.check_balance()


def test_deep_recursion_keeps_root_and_leaf(python: Python, tmp_path: Path) -> None:
    program = tmp_path / "deep.py"
    program.write_text(
        "import sys, time\n"
        "sys.setrecursionlimit(10_000)\n"
        "def leaf():\n"
        "    end = time.thread_time() + 0.5\n"
        "    while time.thread_time() < end:\n"
        "        for _ in range(500): pass\n"
        "def down(n):\n"
        "    if n: down(n - 1)\n"
        "    else: leaf()\n"
        "def main():\n"
        "    for depth in (10, 200, 500, 5_000): down(depth)\n"
        "main()\n"
    )
    profile = Profile(python, tmp_path, program)
    for name in ("main", "leaf"):
        assert collapsed.share(profile.stacks, f"__main__.{name}") > 0.95, name
    cut = [stack for stack in profile.stacks if any("[truncated" in f for f in stack.frames)]
    assert sum(stack.weight for stack in cut) == pytest.approx(1_000_000, rel=0.15)
    assert profile.diagnostics["depth_overflows"] > 0
    assert profile.diagnostics["depth_max"] >= 5_000
    profile.check_balance()


def test_nothing_of_ours_in_the_profile(python: Python, tmp_path: Path) -> None:
    profile = Profile(python, tmp_path, PROGRAMS / "known_split.py")
    for stack in profile.stacks:
        for frame in stack.frames:
            assert "libpyrometer" not in frame
            assert "/pyrometer/" not in frame
    names = {thread["name"] for thread in profile.summary["threads"]}
    assert "pyrometer" not in names


def test_an_idle_program(python: Python, tmp_path: Path) -> None:
    profile = Profile(python, tmp_path, "-c", "import time; time.sleep(1)")
    assert profile.summary["cpu_s"] < 0.2
    assert profile.summary["seconds"] >= 1
