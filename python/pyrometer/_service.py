# SPDX-License-Identifier: Apache-2.0
"""The log report from a process's first line on, as the variable PYROMETER says.

Every child of a service comes by here, most of them for a moment: so nothing is imported
that is not needed, not even __future__. To import ctypes takes longer than all the rest;
the C module behind it does, and where that looks different from today's, ctypes does.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpyrometer.so")  # noqa: PTH100, PTH118, PTH120 - pathlib is not loaded into the program
VARIABLE = "PYROMETER"
CHILDREN, SIGNAL_SHIFT = 2, 8  # PYROMETER_ARM_* of pyrometer.h


def arm(before: "set[str]") -> None:
    """Starts the log report (docs/production.md). Everything after this is C.

    Rows are made and written without Python. Of the loaded modules only those in `before`
    are left.
    """
    try:
        armed = function("pyrometer_arm")()
        if armed > 0 and not armed & CHILDREN:
            os.environ.pop(VARIABLE, None)
        if armed >> SIGNAL_SHIFT > 0:
            _toggle_by(armed >> SIGNAL_SHIFT, function("pyrometer_toggle"))
    except Exception as error:  # noqa: BLE001 - whatever it is, the service goes on
        os.write(2, f"pyrometer: not profiled: {error}\n".encode(errors="backslashreplace"))
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]


def _toggle_by(number: int, toggle: "Callable[[], int]") -> None:
    import signal

    signal.signal(number, lambda _number, _frame: toggle())


def place() -> "str | None":
    """The library's path; None where the process has loaded one for all: by LD_PRELOAD, or a host.

    One profiler runs in a process, so a second copy would be one too many.
    """
    from _ctypes import dlopen, dlsym

    try:
        dlsym(dlopen(None, 0), "pyrometer_arm")  # type: ignore[arg-type]  # None: the whole process
    except OSError:
        return PATH
    return None


def function(name: str) -> "Callable[[], int]":
    """A function of the library that takes nothing and gives an int. Called without the GIL."""
    try:
        from _ctypes import call_function, dlopen, dlsym

        address = dlsym(dlopen(place(), 0), name)  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError):
        from pyrometer._library import library

        return library().function(name)

    def call() -> int:
        return int(call_function(address, ()))

    return call
