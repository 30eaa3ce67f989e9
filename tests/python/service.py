# SPDX-License-Identifier: Apache-2.0
"""A service that burns CPU, armed by the environment variable."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import rows
from conftest import Python

SERVICE = """
import sys, threading, time
def hot(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
def serve(seconds):
    end = time.time() + seconds
    while time.time() < end:
        hot(2000)
"""


def write(folder: Path, program: str) -> Path:
    path = folder / "service.py"
    path.write_text(SERVICE + program, encoding="utf-8", errors="surrogateescape")
    return path


def serve(python: Python, folder: Path, program: str, **settings: Any) -> list[rows.Report]:
    done = python.run(write(folder, program), env=armed(**{"every": 1, **settings}))
    assert done.returncode == 0, done.stderr
    return rows.read(done.stderr)


def armed(**settings: Any) -> dict[str, str]:
    return {**os.environ, "PYROMETER": json.dumps(settings)}
