# SPDX-License-Identifier: Apache-2.0
"""What is left of the cost under a budget, on the same loads as overhead.py.

Events come in bursts then, up to seconds of CPU apart: the shortest of many short runs would
be one without any. So both sides are means over a few seconds, and the minima are of those.
"""

from __future__ import annotations

import loads
import overhead
from interpreters import Interpreter
from measure import compare

SUBJECTS = ["pyrometer budget=3"]
ROUNDS = 3
WINDOWS = 15  # of 0.2 s


def main(pythons: list[Interpreter]) -> int:
    for python in pythons:
        results = {
            name: compare(python, name, SUBJECTS, ROUNDS, repeats=1, windows=WINDOWS)
            for name in (*loads.REAL, loads.FIB)
        }
        overhead.show(f"Under a budget of 3 %, Python {python.name}", results, SUBJECTS)
    return 0
