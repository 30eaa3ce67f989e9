# SPDX-License-Identifier: Apache-2.0
"""What pyrometer.start() takes of a running program, and its memory. Usage: session.py PYTHON...

Each PYTHON has the package and numpy. New processes, in turn without and with numpy imported;
ctypes is imported beforehand, as numpy does it too. Shortest and median of the call, and for
the unwind tables how long they took in all (the larger part meanwhile, by our own thread) and
what they hold; private memory added half a second after the start.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

TURNS = 25
KINDS = {"no numpy": "import ctypes", "numpy": "import ctypes, numpy"}
CHILD = """
import json, sys, time
exec(sys.argv[1])
import pyrometer
def private():
    with open("/proc/self/smaps_rollup") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))
before, start = private(), time.perf_counter()
pyrometer.start()
taken = time.perf_counter() - start
time.sleep(0.5)
tables = pyrometer.snapshot()["unwind_tables"]
print(json.dumps([taken * 1e3, tables["build_s"] * 1e3, tables["bytes"] / 1e6,
                  (private() - before) / 1e3]))
"""


def run(python: str, imports: str) -> list[float]:
    done = subprocess.run(
        [python, "-c", CHILD, imports], check=True, capture_output=True, text=True
    )
    figures: list[float] = json.loads(done.stdout)
    return figures


def main() -> None:
    print(f"{'':10} {'start()':>8} {'median':>7} {'tables':>8} {'hold':>7} {'memory':>8}")
    for python in sys.argv[1:]:
        print(subprocess.check_output([python, "-VV"], text=True).strip())
        taken: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
        for _ in range(TURNS):
            for kind, imports in KINDS.items():
                taken[kind].append(run(python, imports))
        for kind, rows in taken.items():
            calls, builds, tables, memory = zip(*rows, strict=True)
            print(
                f"{kind:10} {min(calls):5.1f} ms {statistics.median(calls):4.1f} ms"
                f" {min(builds):5.1f} ms {min(tables):4.1f} MB {min(memory):5.1f} MB"
            )


main()
