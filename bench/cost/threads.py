# SPDX-License-Identifier: Apache-2.0
"""Many threads: 1,000 that wait and one that works; 10,000 of 2 ms, one after another.

The overhead is that of CPU, as a ratio to the same without a profiler, of the short threads
that of 1,000 of them; accounted is the
part of the process's CPU that is in the profile, as samples or as `(unsampled)`.
"""

from __future__ import annotations

import json
import subprocess

import table
from interpreters import HERE, Interpreter
from measure import compare

SUBJECTS = ["pyrometer", "floor"]
# What is shown: the load whose overhead is measured, its rounds, the load that is accounted.
CASES = {
    "1,000 threads wait, 1 works": ("idle:1000", 5, "idle:1000"),
    "10,000 threads of 2 ms": ("short:1000", 3, "short:10000"),
}


def account(python: Interpreter, load: str) -> list[str]:
    done = subprocess.run(
        python.command(HERE / "account.py", load),
        env=python.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    parts = [answer[key] / answer["cpu"] for key in ("sampled", "unsampled")]
    return [f"{answer['cpu']:.1f}", *(f"{100 * part:.1f} %" for part in (*parts, sum(parts)))]


def main(pythons: list[Interpreter]) -> int:
    for python in pythons:
        rows = []
        for title, (load, rounds, whole) in CASES.items():
            comparison = compare(python, load, SUBJECTS, rounds)
            ratios = [table.ratio(comparison.ratio(subject)) for subject in SUBJECTS]
            rows.append([title, *ratios, *account(python, whole)])
        head = ["", *SUBJECTS, "CPU, s", "sampled", "(unsampled)", "accounted"]
        table.show(f"Many threads, Python {python.name}", head, rows)
    return 0
