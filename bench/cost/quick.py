# SPDX-License-Identifier: Apache-2.0
"""The reduced form for CI: the status is 1 on gross regressions by ratio, and only on those.

What looks like one is measured again before it counts: other work on the machine comes and goes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

import accuracy
import loads
import overhead
from interpreters import Interpreter
from overhead import FLOOR, OURS

NAMES = ["pygments", "ast", "jinja", loads.FIB]
SUBJECTS = [OURS, FLOOR, "cProfile"]
OVER_FLOOR = 1.25  # all events, over callbacks that do nothing
ERROR = 10.0  # points of share on the known split, whose parts move by 5 on a busy machine


def too_slow(results: overhead.Results) -> Iterator[str]:
    for name, comparison in results.items():
        ours, floor, other = (comparison.ratio(subject) or math.nan for subject in SUBJECTS)
        if not ours <= OVER_FLOOR * floor:
            yield f"{name}: {ours:.2f} of unarmed, over {OVER_FLOOR} times the floor's {floor:.2f}"
        if not ours < other:
            yield f"{name}: {ours:.2f} of unarmed, cProfile {other:.2f}"


def measure_overhead(python: Interpreter) -> list[str]:
    results = overhead.measure(python, NAMES, SUBJECTS, rounds=3)
    overhead.show(f"Overhead, Python {python.name}", results, SUBJECTS)
    return list(too_slow(results))


def measure_accuracy(python: Interpreter) -> list[str]:
    results = accuracy.measure(python, "split", [OURS])
    accuracy.show(f"{accuracy.PROGRAMS['split']}, Python {python.name}", results)
    errors = accuracy.errors(results, OURS)
    return (
        []
        if errors and statistics.median(errors) <= ERROR
        else [f"split: over {ERROR} points from the truth"]
    )


def main(pythons: list[Interpreter]) -> int:
    status = 0
    for python in pythons:
        for measure in (measure_overhead, measure_accuracy):
            wrong = measure(python) and measure(python)
            for line in wrong:
                print(f"Python {python.name}, regression: {line}")
            status |= bool(wrong)
    return int(status)
