# SPDX-License-Identifier: Apache-2.0
"""Spends CPU in three known ways, one after the other, and prints what its own clock says."""

import json
import random
import time


def tiny(value: int) -> int:
    return value


def loop_part(seconds: float) -> None:
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        for i in range(20_000):
            total += i * i


def sort_part(seconds: float) -> None:
    numbers = [random.random() for _ in range(200_000)]
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sorted(numbers)


def call_part() -> None:
    for i in range(1_000_000):
        tiny(i)


def main() -> None:
    truth = {}
    start = time.thread_time()
    for name, work in (
        ("loop_part", lambda: loop_part(2.5)),
        ("sort_part", lambda: sort_part(2.0)),
        ("call_part", call_part),
    ):
        before = time.thread_time()
        work()
        truth[name] = time.thread_time() - before
    truth["all"] = time.thread_time() - start
    print(json.dumps(truth))


main()
