# SPDX-License-Identifier: Apache-2.0
"""Do two threads of a free-threaded Python run as much faster with a profiler as without?

Each thread does the same work, nothing is shared: the speed-up is twice the wall time of
one thread over that of two. Meant for a machine with two idle cores.
"""

from __future__ import annotations

import table
from interpreters import Interpreter
from measure import UNARMED, Comparison

SUBJECTS = ["pyrometer", "floor"]
LOADS = {"calls": "parallel", "strings, dict and generators": "parallel_mix"}
ROUNDS = 8


def measure(python: Interpreter, load: str, rounds: int = ROUNDS) -> tuple[Comparison, Comparison]:
    """One thread and two, in turn."""
    subjects = [UNARMED, *SUBJECTS]
    one, two = (Comparison(python, f"{load}:{n}", subjects) for n in (1, 2))
    for number in range(rounds):
        for comparison in (one, two):
            comparison.round(number, repeats=2)
    for comparison in (one, two):
        comparison.end()
    return one, two


def rows_of(title: str, one: Comparison, two: Comparison) -> list[list[str]]:
    rows = []
    speed_ups = {name: 2 * best.wall / two.best[name].wall for name, best in one.best.items()}
    for name, speed_up in speed_ups.items():
        walls = (f"{1000 * best.wall:.0f}" for best in (one.best[name], two.best[name]))
        kept = f"{speed_up / speed_ups[UNARMED]:.3f}"
        rows.append([title, name, *walls, f"{speed_up:.2f}", kept])
    return rows


def main(pythons: list[Interpreter]) -> int:
    for python in pythons:
        rows = []
        for title, load in LOADS.items():
            rows += rows_of(title, *measure(python, load))
        head = ["", "", "1 thread, ms", "2 threads, ms", "speed-up", "of the unarmed one"]
        table.show(f"Two threads at once, Python {python.name}", head, rows)
    return 0
