# SPDX-License-Identifier: Apache-2.0
"""Do the functions have the same shares when a budget takes events away?

Two minutes of CPU with all events beside two minutes under a budget of 3 %, then short runs
under it: in how many is a function's share of the long run inside of the interval that the
profile prints? Functions above 3 %; shares of the program's CPU.
"""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import loads
import table
from interpreters import HERE, Interpreter

LONG, SHORT, RUNS = 120, 10, 20  # seconds of CPU
LEAST = 0.03
BUDGET = "3"

Functions = dict[str, tuple[float, float]]  # share and error, of the program's CPU


def measure(python: Interpreter, load: str, seconds: int, *budget: str) -> Functions:
    command = python.command(HERE / "functions.py", load, seconds, *budget)
    done = subprocess.run(
        command, env=python.environment(), capture_output=True, text=True, check=True
    )
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])["functions"]
    whole = sum(self for _, self, _ in found)
    return {place: (self / whole, error / whole) for place, self, error in found}


def large(functions: Functions) -> list[str]:
    return [place for place, (share, _) in functions.items() if share >= LEAST]


def distance(all_events: Functions, budget: Functions) -> tuple[float, str]:
    """The largest difference, in points, and whose it is."""
    places = {*large(all_events), *large(budget)}
    return max(
        (100 * abs(all_events.get(place, (0, 0))[0] - budget.get(place, (0, 0))[0]), place)
        for place in places
    )


def inside(true: Functions, run: Functions) -> tuple[int, int]:
    """How many of the large functions are within the run's own interval, and of how many."""
    places = large(true)
    good = [abs(run.get(p, (0, 0))[0] - true[p][0]) <= run.get(p, (0, 0))[1] for p in places]
    return sum(good), len(good)


def row(python: Interpreter, load: str) -> list[str]:
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(measure, python, load, LONG, *b) for b in ((), (BUDGET,))]
        all_events, budget = (one.result() for one in both)
        runs = list(pool.map(lambda _: measure(python, load, SHORT, BUDGET), range(RUNS)))
    far, whose = distance(all_events, budget)
    counts = [[inside(true, run) for run in runs] for true in (budget, all_events)]
    parts = [f"{sum(a for a, _ in c)} of {sum(b for _, b in c)}" for c in counts]
    return [load, str(len(large(all_events))), f"{far:.1f}", whose.split()[0], *parts]


def main(pythons: list[Interpreter]) -> int:
    head = ["load", f"functions above {LEAST:.0%}", "largest difference, points", "of"]
    head += [f"{SHORT} s runs: inside, budget run", "all-events run"]
    for python in pythons:
        rows = [row(python, load) for load in loads.REAL]
        table.show(f"All events and a budget of {BUDGET} %, Python {python.name}", head, rows)
    return 0
