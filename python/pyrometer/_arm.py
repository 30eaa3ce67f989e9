# SPDX-License-Identifier: Apache-2.0
"""Profiling from the first line of a program: what `pyrometer run` leaves behind itself.

`pyrometer run` replaces itself by `python PROGRAM` with PYROMETER_RUN set. The
interpreter reads pyrometer.pth before it looks at the program and calls arm() here,
so the program itself is run by plain Python and sees nothing of us: the variable is
taken away again, and so is every module that had to be loaded. (A module left in
sys.modules would hide the program's own file of that name.) What is needed at the
end is loaded now, as by then the program may have put anything in its place.
"""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pyrometer._library import Library
    from pyrometer.report import terminal

VARIABLE = "PYROMETER_RUN"


def arm(before: set[str]) -> None:
    """Starts the profiler as PYROMETER_RUN says, and has it report at exit.

    Of the loaded modules only those in `before` are left.

    A program that ends by os._exit, exec or a signal's default action leaves no
    report: no Python code runs then.
    """
    try:
        _arm(os.environ.pop(VARIABLE))
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]


def _arm(request: str) -> None:
    from pyrometer.report import table, terminal

    stderr = terminal.Stderr()
    try:
        read_json = _json_reader()
        options = read_json(request)
        if options["pid"] != os.getpid():
            return  # not the process that was meant
        from pyrometer._library import library

        profiler = library()
        report = _Report(options, profiler, stderr, read_json, table.render)
        profiler.start(rate=options["rate"], budget=options.get("budget") or 0)
        atexit.register(report.write)  # nearly the first to be registered: called nearly last
    except Exception as error:  # noqa: BLE001 - whatever it is, the program goes on
        stderr.write(f"pyrometer: not profiled: {error}\n")


class _Report:
    """What is written at exit, with all it needs for that."""

    def __init__(
        self,
        options: dict[str, Any],
        profiler: Library,
        stderr: terminal.Stderr,
        read_json: Callable[[str], Any],
        render: Callable[..., str],
    ) -> None:
        self._options = options
        self._profiler = profiler
        self._stderr = stderr
        self._read_json = read_json
        self._render = render

    def write(self) -> None:
        if os.getpid() != self._options["pid"]:
            return  # a forked child: the report is its parent's
        try:
            text = self._write()
        except KeyboardInterrupt:
            text = "pyrometer: interrupted before the report was whole\n"
        except Exception as error:  # noqa: BLE001 - the program's exit status stands
            text = f"pyrometer: the report failed: {error}\n"
        self._stderr.write(text)

    def _write(self) -> str:
        self._profiler.stop()
        wrote, failed = [], []
        for path in self._options["outputs"]:
            try:
                self._profiler.export(path)
                wrote.append(path)
            except (OSError, ValueError, RuntimeError, MemoryError) as error:
                failed.append(f"pyrometer: {path!r} was not written: {error}\n")
        table = "" if self._options["quiet"] else self._table(wrote)
        return table + "".join(failed)

    def _table(self, wrote: list[str]) -> str:
        summary = self._read_json(self._profiler.export_bytes("json").decode())
        top, width = self._options["top"], self._stderr.width()
        return "\n" + self._render(summary, wrote, top=top, width=width)


class _Decoder:
    """What a json.JSONDecoder without options shows to its scanner."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _json_reader() -> Callable[[str], Any]:
    """json.loads, by the scanner behind it: `import json` would load twenty modules."""
    try:
        from _json import make_scanner

        scan = make_scanner(_Decoder)  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError):
        import json

        return json.loads
    return lambda text: scan(text, 0)[0]
