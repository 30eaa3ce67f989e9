# SPDX-License-Identifier: Apache-2.0
"""Calls, calls and calls: `budget_load.py LOAD SECONDS BUDGET|off FOLDER`.

Prints what is true of the load, as JSON; profile.json and profile.collapsed go to FOLDER.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyrometer

UNIT = 20_000  # calls of a tiny function in a round


def tiny(value: int) -> int:
    return (value * 7 + 3) // 5 - value % 11


def light() -> None:
    for value in range(UNIT):
        tiny(value)


def heavy() -> None:
    for value in range(3 * UNIT):
        tiny(value)


def pair(done: Callable[[], bool]) -> int:
    """Two functions that call the same leaf, one three times as often as the other."""
    rounds = 0
    while not done():
        light()
        heavy()
        rounds += 1
    return rounds * 4 * UNIT


def quiet(done: Callable[[], bool]) -> int:
    """Much work in few calls."""
    rounds = 0
    while not done():
        counted(UNIT)
        rounds += 1
    return rounds


def counted(count: int) -> int:
    total = 0
    for value in range(count):
        total += value * value
    return total


def left(done: Callable[[], bool]) -> int:
    return pair(done)


def right(done: Callable[[], bool]) -> int:
    rounds = 0
    while not done():
        for value in range(UNIT):
            abs_of(value)
        rounds += 1
    return rounds


def abs_of(value: int) -> int:
    return abs(value)


def threads(done: Callable[[], bool]) -> int:
    """Two threads, and what one calls the other never does."""
    others = [threading.Thread(target=each, args=(done,), name=each.__name__) for each in BOTH]
    for other in others:
        other.start()
    for other in others:
        other.join()
    return 0


BOTH = (left, right)
LOADS = {"pair": pair, "quiet": quiet, "threads": threads}


def main() -> None:
    load, seconds, budget, folder = sys.argv[1:5]
    given: dict[str, Any] = {} if budget == "off" else {"budget": float(budget)}
    pyrometer.start(**given)
    begin = time.process_time()

    def done() -> bool:
        return time.process_time() - begin > float(seconds)

    calls = LOADS[load](done)
    pyrometer.stop()
    for ending in ("json", "collapsed"):
        pyrometer.export(Path(folder, f"profile.{ending}"))
    print(json.dumps({"calls": calls}))


if __name__ == "__main__":
    main()
