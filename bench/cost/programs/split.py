# SPDX-License-Identifier: Apache-2.0
"""Three known parts: a loop, native code and small calls. Prints what each took."""

from __future__ import annotations

import json
import time


def tiny(value: int) -> int:
    return value


def loop_part() -> int:
    total = 0
    for i in range(30_000_000):
        total += i * i
    return total


def sort_part() -> None:
    numbers = [i * 7919 % 100_003 / 3 for i in range(400_000)]
    for _ in range(40):
        sorted(numbers)


def call_part() -> None:
    for i in range(16_000_000):
        tiny(i)


PARTS = (loop_part, sort_part, call_part)


def main() -> dict[str, float]:
    """What each part took of this thread's CPU."""
    truth = {}
    for part in PARTS:
        before = time.thread_time()
        part()
        truth[part.__name__] = time.thread_time() - before
    return truth


if __name__ == "__main__":
    print(json.dumps(main()))
