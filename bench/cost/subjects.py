# SPDX-License-Identifier: Apache-2.0
"""The profilers that are compared, each as something to switch on and off in this process.

    with subject("pyrometer"):  # SkippedError says why one cannot run here
        work()

Each runs at its own default rate: Pyrometer and py-spy 100 Hz, scalene 100 Hz, pyinstrument
and profiling.sampling 1 kHz. py-spy and profiling.sampling look from outside: a process of
theirs is attached to this one, and its own CPU is told too (`Subject.own_cpu`).
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FLOOR_LIBRARY = "PYROMETER_BENCH_FLOOR"
EVENTS = ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND")


class SkippedError(Exception):
    """Why a subject cannot run here."""


class Subject:
    """Nothing at all: the unarmed process."""

    own_cpu = 0.0  # seconds of CPU of a process beside this one, while it was attached

    def __enter__(self) -> Subject:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def facts(self) -> dict[str, Any]:
        """What a profiler says of itself, while it runs."""
        return {}


class Pyrometer(Subject):
    def __init__(self, **options: int) -> None:
        self._options = options

    def __enter__(self) -> Subject:
        import pyrometer

        try:
            pyrometer.start(**self._options)
        except (TypeError, ValueError) as error:
            raise SkippedError(f"start() refuses {self._options}: {error}") from error
        self._module = pyrometer
        return self

    def __exit__(self, *_: object) -> None:
        self._module.stop()

    def facts(self) -> dict[str, Any]:
        return {
            key: value
            for key, value in self._module.snapshot().items()
            if key in ("signals", "stored", "lost", "overhead", "state")
        }


def _floor_callable() -> Any:
    path = os.environ.get(FLOOR_LIBRARY)
    if not path:
        raise SkippedError(f"{FLOOR_LIBRARY} does not name the floor's library")
    make = ctypes.PyDLL(path).floor_callable
    make.restype = ctypes.py_object
    return make()


class Floor(Subject):
    """The six events, each with a callback that returns None: see floor.c."""

    def __init__(self) -> None:
        self._callable = _floor_callable()

    def __enter__(self) -> Subject:
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.PROFILER_ID, "floor")
        self._events = [getattr(monitoring.events, name) for name in EVENTS]
        for event in self._events:
            monitoring.register_callback(monitoring.PROFILER_ID, event, self._callable)
        monitoring.set_events(monitoring.PROFILER_ID, sum(self._events))
        return self

    def __exit__(self, *_: object) -> None:
        monitoring = sys.monitoring
        monitoring.set_events(monitoring.PROFILER_ID, 0)
        for event in self._events:
            monitoring.register_callback(monitoring.PROFILER_ID, event, None)
        monitoring.free_tool_id(monitoring.PROFILER_ID)


class CProfile(Subject):
    def __enter__(self) -> Subject:
        import cProfile

        self.profile = cProfile.Profile()
        self.profile.enable()
        return self

    def __exit__(self, *_: object) -> None:
        self.profile.disable()


class Yappi(Subject):
    def __enter__(self) -> Subject:
        self.module = need("yappi")
        self.module.set_clock_type("cpu")
        self.module.clear_stats()
        self.module.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.module.stop()


class Pyinstrument(Subject):
    def __enter__(self) -> Subject:
        self.profiler = need("pyinstrument").Profiler(async_mode="disabled")
        self.profiler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.profiler.stop()


class Scalene(Subject):
    """Only in a process that scalene itself has started, and all along: nothing to switch."""


class Outside(Subject):
    """A process that is attached to this one, until it is interrupted."""

    command: tuple[str, ...] = ()
    ready = ""  # what it says when it has begun

    def __init__(self, *options: str, output: Path | None = None) -> None:
        self._options = options
        self._output = output

    def __enter__(self) -> Subject:
        folder = Path(tempfile.gettempdir())
        output = self._output or folder / f"pyrometer-bench-{os.getpid()}.out"
        self._log = tempfile.TemporaryFile("w+")
        self._before = children_cpu()
        # Started in the background we may ignore it, and so would the process that we end by it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._process = subprocess.Popen(
            [*self.command, *self._arguments(output), *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
        )
        self._wait()
        return self

    def _arguments(self, output: Path) -> list[str]:
        raise NotImplementedError

    def _wait(self) -> None:
        """Until it says that it samples: what it does before is not its cost while it runs."""
        output, said = self._process.stdout, ""
        assert output is not None
        end = time.monotonic() + 20
        while time.monotonic() < end and self.ready not in said:
            if select.select([output], [], [], 0.5)[0]:
                chunk = os.read(output.fileno(), 4096).decode(errors="replace")
                said += chunk
                if not chunk:
                    break
        if self.ready not in said:
            self._process.kill()
            self._process.wait()
            raise SkippedError(said.strip().splitlines()[-1] if said.strip() else "says nothing")

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self.own_cpu = children_cpu() - self._before


class PySpy(Outside):
    ready = "Sampling process"

    def __init__(self, *options: str, output: Path | None = None) -> None:
        super().__init__(*options, output=output)
        self.command = (str(beside("py-spy")), "record")

    def _arguments(self, output: Path) -> list[str]:
        return ["--pid", str(os.getpid()), "--format", "raw", "--output", str(output)]


class Sampling(Outside):
    """profiling.sampling, of Python 3.15 on."""

    def __init__(self, *options: str, output: Path | None = None) -> None:
        super().__init__(*options, output=output)
        if importlib.util.find_spec("profiling") is None:
            raise SkippedError("comes with Python 3.15")
        self.command = (sys.executable, "-m", "profiling.sampling", "attach")

    def _arguments(self, output: Path) -> list[str]:
        return ["--all-threads", "--collapsed", "-o", str(output), str(os.getpid())]

    def _wait(self) -> None:
        """It says nothing when it begins: it is given time to."""
        end = time.monotonic() + 2.0
        while time.monotonic() < end:
            if self._process.poll() is not None:
                said = self._process.communicate()[0].strip().splitlines()
                raise SkippedError(said[-1] if said else "ended at once")
            time.sleep(0.05)


def children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def need(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise SkippedError(f"{name} cannot be imported: {error}") from error


def beside(command: str) -> Path:
    """A command that was installed into a folder of PYTHONPATH."""
    for folder in map(Path, sys.path):
        found = folder / "bin" / command
        if found.exists():
            return found
    raise SkippedError(f"{command} is not installed here")


def subject(name: str) -> Subject:
    """ "pyrometer", "pyrometer budget=3", "pyrometer rate=250", "py-spy --native"..."""
    kind, *options = name.split()
    if kind == "pyrometer":
        return Pyrometer(
            **{key: json.loads(value) for key, value in (o.split("=") for o in options)}
        )
    made: Subject = KINDS[kind](*options)
    return made


KINDS: dict[str, Any] = {
    "unarmed": Subject,
    "floor": Floor,
    "cProfile": CProfile,
    "yappi": Yappi,
    "pyinstrument": Pyinstrument,
    "scalene": Scalene,
    "py-spy": PySpy,
    "profiling.sampling": Sampling,
}
