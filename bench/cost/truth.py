# SPDX-License-Identifier: Apache-2.0
"""Is the overhead that a profile states the true one? Armed less unarmed CPU of the same work."""

from __future__ import annotations

import json
import subprocess

import loads
import table
from interpreters import HERE, Interpreter

ROUNDS = 10


def row(python: Interpreter, load: str) -> list[str]:
    done = subprocess.run(
        python.command(HERE / "own.py", load, ROUNDS),
        env=python.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    rounds = json.loads(done.stdout.splitlines()[-1])
    least = min(rounds, key=lambda one: one["armed"])
    true = 1 - min(one["unarmed"] for one in rounds) / least["armed"]
    said = sum(one["own"] for one in rounds) / sum(one["armed"] for one in rounds)
    return [load, f"{100 * true:.1f}", f"{100 * said:.1f}"]


def main(pythons: list[Interpreter]) -> int:
    for python in pythons:
        rows = [row(python, load) for load in (*loads.REAL, loads.FIB)]
        head = ["% of the armed process's CPU", "armed less unarmed", "the profile says"]
        table.show(f"Its own figure, Python {python.name}", head, rows)
    return 0
