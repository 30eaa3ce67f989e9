# SPDX-License-Identifier: Apache-2.0
"""libpyrometer.so through ctypes: the functions of pyrometer.h, their errors as exceptions.

Calls are made without the GIL (ctypes.CDLL); the library takes it where it needs it.
"""

from __future__ import annotations

import ctypes
import os

from pyrometer._service import PATH as PATH
from pyrometer._service import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The exception column of PYROMETER_ERROR_MAP; a test compares it with the header.
EXCEPTIONS: dict[int, type[Exception]] = {
    -1: RuntimeError,  # E_ALREADY_RUNNING
    -2: RuntimeError,  # E_NOT_RUNNING
    -3: RuntimeError,  # E_NO_PROFILE
    -4: ValueError,  # E_OPTION
    -5: ValueError,  # E_FORMAT
    -6: OSError,  # E_FILE
    -7: MemoryError,  # E_MEMORY
    -8: RuntimeError,  # E_SIGNAL
    -9: RuntimeError,  # E_TIMER
    -10: RuntimeError,  # E_THREAD
    -11: RuntimeError,  # E_UNSUPPORTED
    -12: OSError,  # E_CALLBACK
}


class _Options(ctypes.Structure):
    """struct pyrometer_options."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("rate_hz", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("max_threads", ctypes.c_uint32),
        ("report_every_ms", ctypes.c_uint32),
        ("report_top", ctypes.c_uint32),
        ("report_fd", ctypes.c_int),
        ("report_sink", ctypes.c_void_p),
        ("report_context", ctypes.c_void_p),
        ("report_output", ctypes.c_char_p),
        ("budget", ctypes.c_uint32),
    )


_SINK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

_SIGNATURES = {
    "pyrometer_start": (ctypes.c_int, (ctypes.POINTER(_Options),)),
    "pyrometer_stop": (ctypes.c_int, ()),
    "pyrometer_export": (ctypes.c_int, (ctypes.c_char_p,)),
    "pyrometer_export_to": (ctypes.c_int, (ctypes.c_char_p, _SINK, ctypes.c_void_p)),
    "pyrometer_snapshot": (ctypes.c_int, (_SINK, ctypes.c_void_p)),
    "pyrometer_reset": (ctypes.c_int, ()),
    "pyrometer_arm": (ctypes.c_int, ()),
    "pyrometer_toggle": (ctypes.c_int, ()),
    "pyrometer_strerror": (ctypes.c_char_p, (ctypes.c_int,)),
    "pyrometer_version": (ctypes.c_char_p, ()),
}


class Library:
    """The one profiler of this process."""

    def __init__(self) -> None:
        """Loads the library: OSError when that cannot be done."""
        self._calls = ctypes.CDLL(place(), use_errno=True)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._calls, name)
            function.restype = result
            function.argtypes = arguments

    def start(self, *, rate: int = 0, max_threads: int = 0, budget: float = 0) -> None:
        """Starts sampling; 0 is the library's default. `budget`: percent."""
        hundredths = round(budget * 100)
        for value in (rate, max_threads, hundredths):
            if not 0 <= value < 1 << 32:
                raise self._error(-4)
        options = _Options(ctypes.sizeof(_Options), rate, 0, max_threads, budget=hundredths)
        self._check(self._calls.pyrometer_start(ctypes.byref(options)))

    def function(self, name: str) -> Callable[[], int]:
        """A function that takes nothing and gives an int, as it is."""
        found: Callable[[], int] = getattr(self._calls, name)
        return found

    def stop(self) -> None:
        self._check(self._calls.pyrometer_stop())

    def reset(self) -> None:
        self._check(self._calls.pyrometer_reset())

    def export(self, path: str | bytes | os.PathLike[str]) -> None:
        """Writes the profile; the format goes by the ending of `path`."""
        encoded = os.fsencode(path)
        if b"\0" in encoded:
            raise ValueError("embedded null byte in the path")
        self._check(self._calls.pyrometer_export(encoded), path)

    def export_bytes(self, ending: str) -> bytes:
        """The profile in the format of `ending` ("json", "pb.gz", ...)."""
        return self._collect(self._calls.pyrometer_export_to, ending.encode())

    def snapshot(self) -> bytes:
        """The diagnostics, one JSON object."""
        return self._collect(self._calls.pyrometer_snapshot)

    def version(self) -> str:
        return str(self._calls.pyrometer_version(), "ascii")

    def strerror(self, code: int) -> str:
        """What happened and what to do about it."""
        return str(self._calls.pyrometer_strerror(code), "utf-8", "replace")

    def _collect(self, function: ctypes._NamedFuncPointer, *arguments: bytes) -> bytes:
        chunks = []

        def take(_context: int | None, data: int | None, size: int) -> int:
            chunks.append(ctypes.string_at(data, size) if data else b"")
            return 0

        self._check(function(*arguments, _SINK(take), None))
        return b"".join(chunks)

    def _check(self, code: int, path: object = None) -> None:
        if code != 0:
            raise self._error(code, path)

    def _error(self, code: int, path: object = None) -> Exception:
        message = self.strerror(code)
        kind = EXCEPTIONS.get(code, RuntimeError)
        number = ctypes.get_errno()
        if kind is OSError and path is not None and number != 0:
            return OSError(number, f"{message} ({os.strerror(number)})", path)
        return kind(message)


_loaded: Library | None = None


def library() -> Library:
    """The library, loaded at the first call."""
    global _loaded
    if _loaded is None:
        _loaded = Library()
    return _loaded
