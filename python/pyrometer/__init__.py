# SPDX-License-Identifier: Apache-2.0
"""Pyrometer: which Python functions and which native code burn the CPU of this process.

    import pyrometer

    with pyrometer.profile("report.sparkprofile"):
        work()

One profiler runs in a process. Errors are RuntimeError, ValueError, OSError and
MemoryError, and say what to do.

This module imports next to nothing, not even __future__: it is loaded into programs
before they start.
"""

import _thread

TYPE_CHECKING = False  # typing's own is not worth importing typing for
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["export", "profile", "reset", "snapshot", "start", "stop"]


def start(*, rate: int = 100, max_threads: int = 256, budget: "float | None" = None) -> None:
    """Starts sampling, `rate` times per second of CPU and thread (1 to 250).

    Threads beyond `max_threads` are sampled without their Python frames. A profile
    that was stopped before is dropped. `budget` is the CPU that Pyrometer may use, in
    percent of the program's (0.01 to 100): where calls are so many that counting them costs
    more, they are counted part of the time only. None counts all of them.
    """
    from pyrometer._library import library

    if rate == 0 or max_threads == 0:
        raise ValueError("rate and max_threads start at 1")
    if budget is not None and not 0.01 <= budget <= 100:
        raise ValueError("budget is a percentage from 0.01 to 100, or None")
    library().start(rate=rate, max_threads=max_threads, budget=budget or 0)


def stop() -> None:
    """Stops sampling; the profile stays until the next start or reset."""
    from pyrometer._library import library

    library().stop()


def export(path: "str | os.PathLike[str]") -> None:
    """Writes the profile to `path`, also while sampling runs.

    The format goes by the ending: .sparkprofile, .pb.gz, .collapsed or .json.
    """
    from pyrometer._library import library

    library().export(path)


def snapshot() -> "dict[str, Any]":
    """The diagnostics: what was sampled, what was lost and why, what it cost."""
    import json

    from pyrometer._library import library

    result: dict[str, Any] = json.loads(library().snapshot())
    return result


def reset() -> None:
    """Drops a stopped profile and gives its memory back."""
    from pyrometer._library import library

    library().reset()


class profile:  # noqa: N801 - read as a verb: `with profile():`
    """Profiles a block or a function, and writes the report to `path` when one is given.

        with pyrometer.profile("report.pb.gz"):
            work()

        @pyrometer.profile("report.pb.gz", rate=200)
        def work(): ...

    The options are those of `start`. Without a path the profile stays for `export`.
    A function that is entered again while its profile runs (recursion, threads) is
    part of that profile.
    """

    def __init__(
        self, path: "str | os.PathLike[str] | None" = None, **options: "float | None"
    ) -> None:
        self._path = path
        self._options = options
        self._lock = _thread.allocate_lock()
        self._entered = 0

    def __enter__(self) -> "profile":
        with self._lock:
            if self._entered == 0:
                start(**self._options)  # type: ignore[arg-type] # refused where they are wrong
            self._entered += 1
        return self

    def __exit__(
        self,
        kind: "type[BaseException] | None",
        error: "BaseException | None",
        trace: "TracebackType | None",
    ) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered > 0:
                return
            try:
                stop()
                if self._path is not None:
                    export(self._path)
            except (RuntimeError, ValueError, OSError, MemoryError) as ours:
                if error is None:
                    raise
                # The program's own exception goes first.
                if hasattr(error, "add_note"):
                    error.add_note(f"pyrometer: {ours}")

    def __call__(self, function: "Function") -> "Function":
        import functools
        import inspect

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("profile cannot wrap a generator; use it in a with statement")

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def profiled(*args: "Any", **kwargs: "Any") -> "Any":
                with self:
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def profiled(*args: "Any", **kwargs: "Any") -> "Any":
                with self:
                    return function(*args, **kwargs)

        return profiled  # type: ignore[return-value]


def __getattr__(name: str) -> str:
    if name == "__version__":
        import pathlib

        return pathlib.Path(__file__).with_name("VERSION").read_text("ascii").strip()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
