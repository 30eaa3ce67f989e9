# SPDX-License-Identifier: Apache-2.0
"""Which stacks of programs/chains.py can have been. Used by the test and by bench/chains."""

from __future__ import annotations

from collections.abc import Sequence

FUNCTIONS = {"a", "b", "c", "d", "leaf", "main"}
CHAINS = (("a", "b", "leaf"), ("c", "d", "leaf"))

WHOLE = "whole"
CUT_SHORT = "cut short"
IMPOSSIBLE = "impossible"


def judge(names: Sequence[str]) -> str:
    """`names`: the program's own functions on the stack, root first, without `<module>`."""
    if any(tuple(names) == ("main", *chain[:length]) for chain in CHAINS for length in range(4)):
        return WHOLE
    # Frames are missing, but those that are there did stand in that order.
    if any(_is_part(names, ("main", *chain)) for chain in CHAINS):
        return CUT_SHORT
    return IMPOSSIBLE


def _is_part(names: Sequence[str], chain: Sequence[str]) -> bool:
    rest = iter(chain)
    return all(name in rest for name in names)
