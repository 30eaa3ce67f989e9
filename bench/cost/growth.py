# SPDX-License-Identifier: Apache-2.0
"""How the cost grows: with the rate, the depth of the stack and the number of threads."""

from __future__ import annotations

import table
from interpreters import Interpreter
from measure import UNARMED, Best, compare

RATES = [f"pyrometer rate={rate}" for rate in (10, 100, 250)]
FASTEST = RATES[-1]
DEPTHS = (10, 100, 1000)
THREADS = (1, 10, 50, 200)
ROUNDS = 5


def per_sample(best: Best, part: str) -> str:
    """us of CPU for one sample, by the profiler's own clocks."""
    stored = best.facts.get("stored")
    return f"{1e6 * best.facts['overhead'][part] / stored:.1f}" if stored else ""


def by_rate(python: Interpreter) -> None:
    rows = []
    for load in ("pygments", "fib", "python_depth:10"):
        comparison = compare(python, load, [*RATES, "floor"], ROUNDS)
        rows.append([load, *(table.ratio(comparison.ratio(name)) for name in (*RATES, "floor"))])
    head = ["CPU, ratio to unarmed", *RATES, "floor"]
    table.show(f"By rate, Python {python.name}", head, rows)


def by_depth(python: Interpreter) -> None:
    rows = []
    for kind in ("python_depth", "native_depth"):
        for depth in DEPTHS:
            comparison = compare(python, f"{kind}:{depth}", [FASTEST], ROUNDS)
            best = comparison.best[FASTEST]
            if comparison.best[UNARMED].skipped or best.skipped:
                rows.append([kind, str(depth), best.skipped, "", ""])
                continue
            costs = [per_sample(best, part) for part in ("handler_s", "collector_s")]
            rows.append([kind, str(depth), table.ratio(comparison.ratio(FASTEST)), *costs])
    head = ["a loop under", "frames", "250 Hz, CPU, ratio", "handler, us a sample", "collector"]
    table.show(f"By depth of the stack, Python {python.name}", head, rows)


def by_threads(python: Interpreter) -> None:
    subjects = ["pyrometer", FASTEST, "floor"]
    rows = []
    for count in THREADS:
        comparison = compare(python, f"threads:{count}", subjects, ROUNDS)
        rows.append([str(count), *(table.ratio(comparison.ratio(name)) for name in subjects)])
    head = ["threads that share the same work", *subjects]
    table.show(f"By number of threads, Python {python.name}", head, rows)


def main(pythons: list[Interpreter]) -> int:
    for python in pythons:
        by_rate(python)
        by_depth(python)
        by_threads(python)
    return 0
