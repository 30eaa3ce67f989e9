# SPDX-License-Identifier: Apache-2.0
"""Calls of library functions that take nothing and give an int, without the ctypes package.

To import ctypes takes longer than all else that a start needs; the C module behind it does
for this, and where it looks different from today's, ctypes does.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpyrometer.so")  # noqa: PTH100, PTH118, PTH120 - pathlib is not loaded into the program


def place() -> str | None:
    """The library's path; None where the process has loaded one for all: by LD_PRELOAD, or a host.

    One profiler runs in a process, so a second copy would be one too many.
    """
    from _ctypes import dlopen, dlsym  # type: ignore[import-not-found]

    try:
        dlsym(dlopen(None, 0), "pyrometer_arm")
    except OSError:
        return PATH
    return None


def function(name: str) -> Callable[[], int]:
    """The function of that name; it is called without the GIL."""
    try:
        from _ctypes import call_function, dlopen, dlsym

        address = dlsym(dlopen(place(), 0), name)
    except (ImportError, AttributeError, TypeError):
        from pyrometer._library import library

        return library().function(name)

    def call() -> int:
        return int(call_function(address, ()))

    return call
