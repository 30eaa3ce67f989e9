# SPDX-License-Identifier: Apache-2.0
"""Event loops that burn a good part of a core: their CPU is on what burns it, not on select."""

from __future__ import annotations

import json

from conftest import ROOT, Python
from service import armed

PROGRAM = ROOT / "bench/free_threaded/loops.py"


def test_loops_burn_where_they_burn(python: Python) -> None:
    done = python.run(PROGRAM, env=armed(every=1, top=200, format="json"))
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stderr.splitlines()]
    loops = [row for row in rows if row["profile"] == "thread" and row["name"].startswith("loop-")]
    functions = [row for row in rows if row["profile"] == "function"]
    assert {row["name"] for row in loops} == {"loop-0", "loop-1"}
    # Intervals last about a second each: cores add up to seconds, in the same way on both sides.
    kernel = sum(row["cores"] for row in loops)
    sampled = sum(row["sampled"] for row in loops)
    burnt = sum(row["tottime"] for row in functions if "__main__.burn" in row["name"])
    waited = sum(row["tottime"] for row in functions if "select" in row["name"])
    assert abs(sampled - kernel) <= 0.05 * kernel
    assert burnt > 0.85 * kernel
    assert waited < 0.05 * kernel
    # /proc's account at the end holds what the intervals do, and the one that was under way.
    account = sum(json.loads(done.stdout)["cpu_s"].values())
    assert 0.6 * account < kernel < 1.05 * account
