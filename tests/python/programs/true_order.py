# SPDX-License-Identifier: Apache-2.0
"""One deep stack through every kind of border between Python and C, then a spin at its end."""

import functools
import json
import re
import time

SECONDS = 1.5


def spin() -> None:
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        for _ in range(1_000):
            pass


class Odd:
    pass


def default_for(odd: object) -> str:
    spin()
    return "odd"


def replace(match: "re.Match[str]") -> str:
    json.dumps([Odd()], default=default_for)
    return "b"


def sort_key(value: int) -> int:
    re.sub("a", replace, "a")
    return value


def recurse(depth: int) -> None:
    if depth > 1:
        recurse(depth - 1)
    else:
        sorted([1], key=sort_key)


def mapped(value: int) -> int:
    recurse(60)
    return value


def partial_target(number: int, word: str) -> None:
    list(map(mapped, [number]))


def main() -> None:
    functools.partial(partial_target, 1)("x")


main()
