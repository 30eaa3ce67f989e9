# SPDX-License-Identifier: Apache-2.0
"""The commands, one file each: main(arguments) does it and returns the exit status."""

from __future__ import annotations

FORMATS = (".sparkprofile", ".pb.gz", ".collapsed", ".json")
FORMATS_LATER = (".html", ".speedscope.json")


class Refusal(Exception):  # noqa: N818 - not a fault of the program's
    """One line for the user, and the exit status."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status
