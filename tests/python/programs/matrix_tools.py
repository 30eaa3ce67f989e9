# SPDX-License-Identifier: Apache-2.0
"""What other tools, signals and the garbage collector do in the middle of a program.

Each is a context in which other scenarios run.
"""

from __future__ import annotations

import contextlib
import cProfile
import ctypes
import gc
import importlib
import io
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from random import Random
from types import FrameType
from typing import Any

from matrix_work import Trouble, burn, burn_through_c

WITHOUT_GIL = not getattr(sys, "_is_gil_enabled", lambda: True)()
in_main = threading.local()
one_at_a_time = threading.Lock()  # for tools of which a process can have one


class Sides:
    """Two kinds of contexts that must not meet: coverage waits for ever for its own lock when
    a handler runs, or an exception from outside arrives, while it holds that."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = {"coverage": 0, "interruptions": 0}

    @contextlib.contextmanager
    def entered(self, side: str) -> Iterator[bool]:
        with self.lock:
            allowed = all(name == side or count == 0 for name, count in self.inside.items())
            self.inside[side] += allowed
        try:
            yield allowed
        finally:
            with self.lock:
                self.inside[side] -= allowed


sides = Sides()


class Interrupted(Exception):  # noqa: N818 - a signal, not an error
    """Raised by a signal handler, or from another thread."""


def trace(_frame: FrameType, _event: str, _argument: object) -> Any:
    burn(1)
    return trace


def profile(_frame: FrameType, _event: str, _argument: object) -> None:
    burn(1)


@contextlib.contextmanager
def traced(_rng: Random) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def profiled(_rng: Random) -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextlib.contextmanager
def left_traced(_rng: Random) -> Iterator[None]:
    """Switched on here and off somewhere else, deeper or less deep."""
    sys.settrace(None if sys.gettrace() else trace)
    yield


@contextlib.contextmanager
def trace_that_raises(rng: Random) -> Iterator[None]:
    """A tracer whose exception takes the place of the call: no event tells of that frame."""

    def cruel(frame: FrameType, event: str, _argument: object) -> Any:
        if event == "call" and frame.f_code is burn.__code__ and cruel_random.random() < 0.03:
            raise Trouble
        return None

    cruel_random = Random(rng.random())
    before = sys.gettrace()

    def guarded() -> int:
        try:
            return burn(6)
        except Trouble:
            return burn(2)

    sys.settrace(cruel)
    try:
        for _ in range(20):
            with contextlib.suppress(Trouble):
                guarded()
                guarded()
    finally:
        sys.settrace(before)
    yield


@contextlib.contextmanager
def alone() -> Iterator[bool]:
    taken = one_at_a_time.acquire(blocking=False)
    try:
        yield taken
    finally:
        if taken:
            one_at_a_time.release()


@contextlib.contextmanager
def under_cprofile(_rng: Random) -> Iterator[None]:
    # 3.13's free-threaded cProfile never comes back from disable() when other threads ran.
    if WITHOUT_GIL and sys.version_info < (3, 14):
        yield
        return
    with alone() as allowed:
        profiler = cProfile.Profile()
        if allowed:
            profiler.enable()
        try:
            yield
        finally:
            if allowed:
                profiler.disable()


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Coverage waits for ever for its own lock when a gc callback runs in its start()."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def under_coverage(rng: Random) -> Iterator[None]:
    try:
        coverage = importlib.import_module("coverage")
    except ImportError:
        yield
        return
    with sides.entered("coverage") as meets_none, alone() as one:
        allowed = meets_none and one
        measured = None
        if allowed and threading.current_thread() is threading.main_thread():
            core = rng.choice(("sysmon", "ctrace"))
            measured = coverage.Coverage(data_file=None, messages=False, config_file=False)
            measured.set_option("run:core", core)
            with no_collection():
                measured.start()
        try:
            yield
        finally:
            if measured is not None:
                with no_collection():
                    measured.stop()


handling = 0


def on_signal(_number: int, _frame: FrameType | None) -> None:
    """Also while it runs itself, but not so often that it never ends."""
    global handling
    if handling < 2:
        handling += 1
        try:
            burn(3)
            burn_through_c(1)
        finally:
            handling -= 1


raising = False


def on_signal_raising(_number: int, _frame: FrameType | None) -> None:
    burn(2)
    if raising:
        raise Interrupted


@contextlib.contextmanager
def timer(handler: Callable[[int, FrameType | None], None], period: float) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, period, period)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def signalled(rng: Random) -> Iterator[None]:
    in_main_thread = threading.current_thread() is threading.main_thread()
    with sides.entered("interruptions") as allowed, contextlib.ExitStack() as timers:
        if in_main_thread and allowed:
            timers.enter_context(timer(on_signal, rng.choice((0.0002, 0.001))))
        yield


def levels(depth: int) -> int:
    """Direct recursion in which every other level goes on after an interruption."""
    try:
        return burn(depth % 5) if depth == 0 else levels(depth - 1) + burn(3)
    except Interrupted:
        if depth % 2:
            raise
        return burn(2)


def stepping(depth: int) -> Iterator[int]:
    yield burn(1)
    if depth > 0:
        for value in stepping(depth - 1):  # noqa: UP028 - each level is resumed on its own
            yield value


def catching(depth: int) -> Iterator[int]:
    yield burn(1)
    if depth > 0:
        for value in catching(depth - 1):
            try:
                yield value
            except Interrupted:
                burn(1)


class Target:
    """Burns while Interrupted may come from anywhere, and gets over each of them."""

    def __init__(self, steps: Callable[[int], Iterator[int]]) -> None:
        self.steps = steps
        self.beats = 0

    def burn_until(self, done: Callable[[], bool]) -> None:
        while not done():
            try:
                levels(8)
                sum(self.steps(5))
                burn_through_c(3)
            except Interrupted:
                burn(2)
            self.beats += 1

    def survive(self, done: Callable[[], bool]) -> None:
        """From a done() on there must be no more of them."""
        while True:
            try:
                self.burn_until(done)
            except Interrupted:
                continue
            break


@contextlib.contextmanager
def interrupted(_rng: Random) -> Iterator[None]:
    """Handlers that raise, wherever the interpreter looks for signals.

    That may be in a tracer, whose exception then comes before our event: see below for
    what a generator must not do then.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    with sides.entered("interruptions") as allowed:
        if in_main_thread and allowed:
            be_interrupted()
    yield


def be_interrupted() -> None:
    steps = catching if sys.gettrace() is None and sys.getprofile() is None else stepping
    target = Target(steps)

    def done() -> bool:
        global raising
        raising = target.beats < 200
        return not raising

    with timer(on_signal_raising, 0.0003):
        target.survive(done)


@contextlib.contextmanager
def interrupted_from_outside(_rng: Random) -> Iterator[None]:
    """The same in any thread, by PyThreadState_SetAsyncExc.

    No Python code runs then. From 3.13 on, a generator that is being resumed and catches
    it goes on without a RESUME: no event shows that it stands there until it leaves.
    A limit, known and small: so none does that here.
    """
    with sides.entered("interruptions") as allowed:
        if allowed:
            be_interrupted_from_outside()
    yield


def be_interrupted_from_outside() -> None:
    target = Target(stepping)
    ident = threading.get_ident()
    stop = threading.Event()

    def shoot() -> None:
        send = ctypes.pythonapi.PyThreadState_SetAsyncExc
        wait_for(1)
        for _ in range(5):
            send(ctypes.c_ulong(ident), ctypes.py_object(Interrupted))
            wait_for(target.beats + 2)  # by then it has arrived
        stop.set()

    def wait_for(beats: int) -> None:
        while target.beats < beats:
            stop.wait(0.0003)

    gun = threading.Thread(target=shoot)
    gun.start()
    target.survive(stop.is_set)
    gun.join()


def on_collection(_phase: str, _facts: dict[str, int]) -> None:
    burn(2)


class Cyclic:
    def __init__(self) -> None:
        self.self = self

    def __del__(self) -> None:
        burn(2)
        burn_through_c(1)


@contextlib.contextmanager
def collecting(rng: Random) -> Iterator[None]:
    """A collector that runs all the time, its callbacks and the finalisers of what it finds."""
    before = gc.get_threshold()
    gc.callbacks.append(on_collection)
    gc.set_threshold(rng.choice((10, 40, 100)), 5, 5)
    try:
        for _ in range(10):
            Cyclic()
            burn(2)
        yield
    finally:
        gc.set_threshold(*before)
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(on_collection)


@contextlib.contextmanager
def plain(_rng: Random) -> Iterator[None]:
    yield


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Exceptions nobody can catch are printed: not here."""
    before, sys.stderr = sys.stderr, io.StringIO()
    try:
        yield
    finally:
        sys.stderr = before


ALONE = (
    plain,
    traced,
    profiled,
    left_traced,
    trace_that_raises,
    under_cprofile,
    under_coverage,
    signalled,
    interrupted,
    interrupted_from_outside,
    collecting,
)


@contextlib.contextmanager
def two_at_once(rng: Random) -> Iterator[None]:
    with rng.choice(ALONE)(rng), rng.choice(ALONE)(rng):
        yield


@contextlib.contextmanager
def traced_while_collecting(rng: Random) -> Iterator[None]:
    """At the limit of recursion the tracer fails in a finaliser, which the interpreter reports.

    From 3.13 on that runs Python code right before a call that no event has told of yet.
    """
    with traced(rng), collecting(rng), quiet_stderr():
        yield


CONTEXTS = (*ALONE, two_at_once, traced_while_collecting)
