# SPDX-License-Identifier: Apache-2.0
"""What the scenarios of the matrix burn and raise."""

from __future__ import annotations

import functools


class Trouble(Exception):  # noqa: N818 - wanted, not an error
    """Raised on purpose."""


def burn(size: int) -> int:
    """A small tree of calls."""
    return size if size < 2 else burn(size - 1) + burn(size - 2)


def burn_through_c(size: int) -> int:
    """The same with a native frame between each call and the next."""
    if size == 0:
        return burn(1)
    return functools.reduce(lambda total, value: total + burn_through_c(value), (0, size - 1), 0)


def sink(depth: int, leaf: object) -> object:
    """Calls `leaf` under `depth` frames of one code."""
    return leaf() if depth == 0 else sink(depth - 1, leaf)  # type: ignore[operator]
