# SPDX-License-Identifier: Apache-2.0
"""A process that runs one load under one subject after the other, as it is told on stdin.

worker.py LOAD. It answers each line with one line of JSON that starts with MARK, and ends
at the end of its input. All that only happens once (imports, a first run) is done before
the first answer. Talked to by measure.py.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from typing import Any

import loads
import subjects

MARK = "@bench "
ENOUGH = 0.2  # seconds of a measurement, about
TOO_LONG = (
    3 * ENOUGH
)  # a measurement that takes so much longer ends: a slow subject needs no minimum


def say(answer: dict[str, Any]) -> None:
    sys.stdout.write(MARK + json.dumps(answer) + "\n")
    sys.stdout.flush()


def times_for(load: loads.Load) -> int:
    """How many runs make one measurement."""
    load()
    best = 1e9
    for _ in range(3):
        start = time.process_time()
        load()
        best = min(best, time.process_time() - start)
    return max(1, round(ENOUGH / best))


def run(load: loads.Load, times: int, most: float) -> tuple[float, float]:
    """CPU of the process and wall time, per run."""
    gc.collect()
    done, wall, cpu = 0, time.perf_counter(), time.process_time()
    while done < times and time.perf_counter() < wall + most:
        load()
        done += 1
    return (time.process_time() - cpu) / done, (time.perf_counter() - wall) / done


def settle(load: loads.Load, times: int, seconds: float) -> None:
    """Runs without a clock after a switch: the code is instrumented and specialised anew."""
    end = time.monotonic() + seconds
    load()
    if times > 1:
        load()
    while time.monotonic() < end:
        load()


def measure(load: loads.Load, order: dict[str, Any]) -> dict[str, Any]:
    """What one order asks for: `subject`, `times`, `repeats` and `settle` in seconds.

    Each repeat takes `times` runs of the load, `windows` times that where it is given.
    """
    windows = order.get("windows", 1)
    try:
        subject = subjects.subject(order["subject"])
        began = time.perf_counter()
        with subject:
            settle(load, order["times"], order["settle"])
            times, most = windows * order["times"], windows * TOO_LONG
            results = [run(load, times, most) for _ in range(order["repeats"])]
            facts = subject.facts()
    except subjects.SkippedError as error:
        return {"skipped": str(error)}
    return {
        "cpu": min(cpu for cpu, _ in results),
        "wall": min(wall for _, wall in results),
        "own": subject.own_cpu / (time.perf_counter() - began),
        "facts": facts,
    }


def main() -> None:
    try:
        load = loads.load(sys.argv[1])
    except ImportError as error:
        say({"skipped": str(error)})
        return
    say({"times": times_for(load)})
    for line in sys.stdin:
        say(measure(load, json.loads(line)))


if __name__ == "__main__":
    main()
