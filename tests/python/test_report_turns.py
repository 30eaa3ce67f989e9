# SPDX-License-Identifier: Apache-2.0
"""Workers that write to one log: the rows of a report stand together."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import Python

pytestmark = pytest.mark.usual_pythons

WORKERS = 12

PROGRAM = """
import os, time
def hot(n):
    total = 0
    for i in range(n): total += i * i
def work():
    end = time.time() + 2.5
    while time.time() < end: hot(2000)
for _ in range(WORKERS):
    if os.fork() == 0:
        work()
        os._exit(0)
for _ in range(WORKERS): os.wait()
"""

# What may follow a row in a report, by kind: process, thread, active, function.
MAY_FOLLOW = {
    None: "process",
    "process": "process thread active",
    "thread": "thread active",
    "active": "active function process",  # what is estimated is said in a row of that kind
    "function": "function process",
}


def kind_of(row: str) -> str:
    body = row.removeprefix("[profile] ")
    if body.startswith("pid="):
        return "process"
    if body.startswith("thread "):
        return "thread"
    return "function" if body.startswith("tottime=") else "active"


def test_reports_do_not_mix(python: Python, tmp_path: Path) -> None:
    program = tmp_path / "workers.py"
    program.write_text(PROGRAM.replace("WORKERS", str(WORKERS)))
    settings = json.dumps({"every": 0.1, "top": 20})
    done = python.run("-W", "ignore", program, env={**os.environ, "PYROMETER": settings})
    assert done.returncode == 0, done.stderr
    kinds = [kind_of(row) for row in done.stderr.splitlines() if row.startswith("[profile]")]
    assert kinds.count("process") > WORKERS * 10
    before: list[str | None] = [None, *kinds[:-1]]
    mixed = [pair for pair in zip(before, kinds, strict=True) if pair[1] not in MAY_FOLLOW[pair[0]]]
    assert mixed == []
