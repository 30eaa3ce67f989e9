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


@pytest.fixture(scope="module")
def split(python: Python, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return Profile(python, tmp_path_factory.mktemp("split"), PROGRAMS / "known_split.py")


def test_known_split(split: Profile) -> None:
    truth = json.loads(split.done.stdout)
    for name in ("loop_part", "sort_part", "call_part"):
        measured = split.function(f"__main__.{name}")["total_s"] / split.summary["sampled_s"]
        assert measured == pytest.approx(truth[name] / truth["all"], abs=0.02), name
    main = split.thread("MainThread")
    assert main["cpu_s"] >= 4.5
    assert main["sampled_s"] == pytest.approx(main["cpu_s"], rel=0.03)
    tiny = split.function("__main__.tiny")
    assert (tiny["calls"], tiny["calls_exact"]) == (1_000_000, True)
    assert split.function("__main__.loop_part")["calls"] == 1
    split.check_balance()


def test_pure_python_is_complete(split: Profile) -> None:
    d = split.diagnostics
    assert d["samples_complete"] >= 0.995 * d["stored"]
    assert d["samples_attributed"] >= 0.97 * d["stored"]


def test_nothing_of_ours_in_the_profile(split: Profile) -> None:
    for stack in split.stacks:
        for frame in stack.frames:
            assert "libpyrometer" not in frame
            assert "site-packages/pyrometer/" not in frame
    names = {thread["name"] for thread in split.summary["threads"]}
    assert "pyrometer" not in names


# What must stand on the stack from the program's first frame to spin, root first. A tuple is
# a border that C code crosses: its symbols must all be there, in this order, with other C
# frames between them at most. Everywhere else a Python frame must follow on the other.
TRUE_ORDER: list[str | tuple[str, ...]] = [
    ("Py_BytesMain",),
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
# The name of a function whose symbol is not there, from its address.
NAMELESS = "0x"


def match_order(frames: tuple[str, ...], *, stripped: bool) -> str:
    """ "" when the frames are exactly the true order, else where they first differ.

    In a stripped interpreter any function without a name may be the one that is looked for.
    """
    left = list(frames)
    for step in TRUE_ORDER:
        if isinstance(step, str):
            if not left or left.pop(0) != step:
                return f"{step} is not where it belongs"
            continue
        crossed: list[str] = []
        while left and "!" in left[0]:
            crossed.append(left.pop(0).split("!")[1])
        symbols = iter(crossed)
        for wanted in step:
            names = (wanted, NAMELESS) if stripped else wanted
            if not any(symbol.startswith(names) for symbol in symbols):
                return f"{step} is not among {crossed}"
    return ""


def is_stripped(python: Python) -> bool:
    """Whether the interpreter's own file lacks the names of its static functions."""
    program = r"""
import re
files = set(re.findall(r"/.*/(?:lib)?python3[^/\s]*$", open("/proc/self/maps").read(), re.M))
print(any(b"\0list_vectorcall" in open(file, "rb").read() for file in files))
"""
    return {"True\n": False, "False\n": True}[python.run("-c", program).stdout]


def test_true_order(python: Python, tmp_path: Path) -> None:
    profile = Profile(python, tmp_path, ORDER)
    spinning = [stack for stack in profile.stacks if "__main__.spin" in stack.names]
    assert sum(stack.weight for stack in spinning) > 1_300_000
    stripped = is_stripped(python)
    for stack in spinning:
        assert match_order(stack.names, stripped=stripped) == "", stack.names
    # All samples share one and the same stack down to the spin.
    assert len({stack.names[: stack.names.index("__main__.spin")] for stack in spinning}) == 1
    # Only frames that were there before us, those of Python's own start, may have no mark.
    early = [stack for stack in profile.stacks if "site.main" in stack.names]
    assert early or profile.diagnostics["boundary_misses"] == 0
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


def test_numpy_mix_is_complete(python: Python, tmp_path: Path) -> None:
    python.need("numpy")
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
        # In a user namespace of its own the process shares the limit with nobody. It is
        # root there (if it is here), so that it may go on into the interpreter's own root.
        new_user_namespace = 0x10000000
        user = os.getuid()
        if ctypes.CDLL(None).unshare(new_user_namespace) != 0:
            os._exit(77)
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
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


def test_an_idle_program(python: Python, tmp_path: Path) -> None:
    profile = Profile(python, tmp_path, "-c", "import time; time.sleep(1)")
    assert profile.summary["cpu_s"] < 0.2
    assert profile.summary["seconds"] >= 1


HANDLED_BY_LOOP = (
    "__main__.<module>",
    "asyncio.runners.run",
    "asyncio.runners.Runner.run",
    "asyncio.base_events.BaseEventLoop.run_until_complete",
    "asyncio.base_events.BaseEventLoop.run_forever",
    "asyncio.base_events.BaseEventLoop._run_once",
    "asyncio.events.Handle._run",
)


def test_cancelled_coroutine_stands_under_its_awaiters(python: Python, tmp_path: Path) -> None:
    """The exception is thrown in at the innermost await: no awaiter is resumed before it burns."""
    profile = Profile(python, tmp_path, PROGRAMS / "cancelled.py")
    awaiters = ("__main__.first", "__main__.second", "__main__.third", "__main__.innermost")
    ways = {
        "__main__.after_cancel": awaiters,
        "__main__.after_timeout": ("__main__.main", "__main__.by_timeout", *awaiters),
        "__main__.after_failure": awaiters,
    }
    burnt = dict.fromkeys(ways, 0)
    for stack in profile.stacks:
        if "__main__.burn" not in stack.names:
            continue
        (way,) = set(ways) & set(stack.names)
        assert stack.python == (*HANDLED_BY_LOOP, *ways[way], way, "__main__.burn")
        burnt[way] += stack.weight
    assert burnt == {way: pytest.approx(500_000, rel=0.1) for way in ways}
    profile.check_balance()


def test_attaching_late_to_deep_threads(python: Python, tmp_path: Path) -> None:
    """Started when five threads stand forty calls deep, two of which make no call any more.

    The stacks of all threads are taken over at the start, with the GIL and without it: each
    is whole from the first sample on.
    """
    output = tmp_path / "late.collapsed"
    done = python.run(PROGRAMS / "late_attach.py", output)
    assert done.returncode == 0, done.stderr
    stacks = collapsed.read(output)
    deep = (
        *(f"threading.Thread.{name}" for name in ("_bootstrap", "_bootstrap_inner", "run")),
        *(f"__main__.level_{number:02}" for number in range(40)),
    )
    for thread, work in (("one-call", "one_call"), ("loop", "loop")):
        mine = sampled(stacks, thread)
        assert sum(stack.weight for stack in mine) > 100_000
        assert {stack.python for stack in mine} == {(*deep, f"__main__.{work}")}
    calling = (*deep, "__main__.calls")
    wholes = {calling, (*calling, "__main__.called")}
    for thread in ("caller-0", "caller-1", "caller-2"):
        seen = {stack.python for stack in sampled(stacks, thread)}
        assert seen & wholes
        assert seen <= wholes


def sampled(stacks: list[collapsed.Stack], thread: str) -> list[collapsed.Stack]:
    """A thread's samples, without what is booked outside of any frame."""
    pseudo = {("(unsampled)",), ("[pyrometer]",)}
    return [stack for stack in stacks if stack.thread == thread and stack.frames not in pseudo]
