# SPDX-License-Identifier: Apache-2.0
"""What each profiler adds to the CPU of real programs, as a ratio to the same run without it."""

from __future__ import annotations

import math

import loads
import table
from interpreters import Interpreter
from measure import UNARMED, Comparison, compare

OURS = "pyrometer"
FLOOR = "floor"
INSIDE = [OURS, FLOOR, "cProfile", "yappi", "pyinstrument", "scalene"]
OUTSIDE = ["py-spy", "py-spy --native", "profiling.sampling"]
ROUNDS = 5

Results = dict[str, Comparison]


def measure(
    python: Interpreter, names: list[str], subjects: list[str], rounds: int = ROUNDS
) -> Results:
    return {name: compare(python, name, subjects, rounds) for name in names}


def mean(results: Results, subject: str, of: str = "cpu") -> float:
    """Geometric mean over the real loads."""
    ratios = [results[name].ratio(subject, of) for name in results if name != loads.FIB]
    known = [value for value in ratios if value is not None]
    return table.geometric_mean(known) if known else math.nan


def show(title: str, results: Results, subjects: list[str]) -> None:
    real = [name for name in results if name != loads.FIB]
    head = ["CPU, ratio to unarmed", *real, f"mean of {len(real)}", loads.FIB]
    rows = [["unarmed, ms", *(f"{1000 * results[n].best[UNARMED].cpu:.1f}" for n in real), ""]]
    rows[0].append(f"{1000 * results[loads.FIB].best[UNARMED].cpu:.1f}")
    for subject in subjects:
        skipped = results[loads.FIB].best[subject].skipped
        if skipped:
            print(f"{subject}: skipped, {skipped}")
            continue
        cells = [table.ratio(results[name].ratio(subject)) for name in real]
        last = table.ratio(results[loads.FIB].ratio(subject))
        rows.append([subject, *cells, table.ratio(mean(results, subject)), last])
    table.show(title, head, rows)


def show_outside(title: str, results: Results, subjects: list[str]) -> None:
    head = ["from outside", "wall, mean", "CPU, mean", "wall, fib", "cores it uses itself, mean"]
    rows = []
    for subject in subjects:
        bests = [comparison.best[subject] for comparison in results.values()]
        if bests[-1].skipped:
            print(f"{subject}: skipped, {bests[-1].skipped}")
            continue
        cells = [mean(results, subject, "wall"), mean(results, subject)]
        cells.append(results[loads.FIB].ratio(subject, "wall") or math.nan)
        cells.append(sum(best.own for best in bests) / len(bests))
        rows.append([subject, *map(table.ratio, cells)])
    table.show(title, head, rows)


def main(pythons: list[Interpreter]) -> int:
    for python in pythons:
        results = measure(python, [*loads.REAL, loads.FIB], [*INSIDE, *OUTSIDE])
        show(f"Overhead, Python {python.name}", results, INSIDE)
        show_outside(f"Overhead from outside, Python {python.name}", results, OUTSIDE)
    return 0
