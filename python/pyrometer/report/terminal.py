# SPDX-License-Identifier: Apache-2.0
"""The terminal: names that cannot move its cursor, columns that fit, stderr past the program."""

from __future__ import annotations

import os
import sys
import unicodedata

WIDTH_UNKNOWN = 120  # columns, where nothing says how many there are


def printable(text: str) -> str:
    """`text` with everything that does not print (escapes, bidi controls) as a \\x escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def columns(text: str) -> int:
    """How many columns printable text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int) -> str:
    """`text` in at most `width` columns: of a name the end tells most."""
    surplus = columns(text) - width
    if surplus <= 0:
        return text
    for index, character in enumerate(text, 1):
        surplus -= _columns(character)
        if surplus <= -2:  # room for the two dots
            return f"..{text[index:]}"
    return ".."


class Stderr:
    """The stderr the process was started with, whatever the program makes of sys.stderr."""

    def __init__(self) -> None:
        self._stream = sys.__stderr__
        self._descriptor = self._number()

    def _number(self) -> int | None:
        if self._stream is None or self._stream.closed:
            return None
        return self._stream.fileno()

    def write(self, text: str) -> None:
        """Writes behind what the program has printed; nothing where that cannot be done."""
        if not text or self._descriptor is None or self._number() != self._descriptor:
            return
        for stream in (sys.__stdout__, self._stream):
            try:
                if stream is not None:
                    stream.flush()
            except (OSError, ValueError):
                pass  # the interpreter meets it again at its own flush, and tells
        encoding = (self._stream and self._stream.encoding) or "utf-8"
        rest = text.encode(encoding, "backslashreplace")
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            pass

    def width(self) -> int:
        """Columns for a line: COLUMNS, else the terminal's."""
        wanted = os.environ.get("COLUMNS", "")
        if wanted.isascii() and wanted.isdigit() and int(wanted) > 0:
            return int(wanted)
        try:
            return os.get_terminal_size(self._descriptor or 2).columns or WIDTH_UNKNOWN
        except OSError:
            return WIDTH_UNKNOWN
