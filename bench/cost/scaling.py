# SPDX-License-Identifier: Apache-2.0
"""Do two threads of a free-threaded Python run as much faster with a profiler as without?

Each thread does the same work, by functions of its own but in the last load. The speed-up is
twice the wall time of one thread over that of two, meant for a machine with two idle cores.
The same of CPU time shows, on a busy one too, what the threads cost each other.
"""

from __future__ import annotations

import table
from interpreters import Interpreter
from measure import UNARMED, Comparison

SUBJECTS = ["pyrometer", "floor"]
LOADS = {
    "calls": "parallel_calls",
    "strings, a dict, generators": "parallel_mix",
    "those, by the same functions": "parallel_same",
}
ROUNDS = 6


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


def speed_up(one: Comparison, two: Comparison, subject: str, of: str) -> float:
    value: float = 2 * getattr(one.best[subject], of) / getattr(two.best[subject], of)
    return value


def rows_of(title: str, one: Comparison, two: Comparison) -> list[list[str]]:
    rows: list[list[str]] = []
    for name, best in one.best.items():
        walls = [f"{1000 * wall:.0f}" for wall in (best.wall, two.best[name].wall)]
        cells = [f"{speed_up(one, two, name, 'wall'):.2f}"]
        for of in ("wall", "cpu"):
            kept = speed_up(one, two, name, of) / speed_up(one, two, UNARMED, of)
            cells.append(f"{kept:.3f}")
        rows.append([title, name, *walls, *cells])
    return rows


def main(pythons: list[Interpreter]) -> int:
    for python in pythons:
        rows = []
        for title, load in LOADS.items():
            rows += rows_of(title, *measure(python, load))
        head = ["", "", "1 thread, ms", "2 threads, ms", "speed-up"]
        head += ["of the unarmed one", "the same by CPU"]
        table.show(f"Two threads at once, Python {python.name}", head, rows)
    return 0
