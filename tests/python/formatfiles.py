# SPDX-License-Identifier: Apache-2.0
"""The odd views in every format, as tests/c/test_export writes them.

Beside each view's files stand the numbers they must hold (VIEW.truth). The program
is looked for in the build folder (PYROMETER_BUILD, or build/ of this repository).
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import pprofcheck
import pytest
import sparkcheck
from protowire import Message

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PYROMETER_BUILD", "build"))
PROGRAM = (BUILD if BUILD.is_absolute() else ROOT / BUILD) / "tests/c/test_export"
VIEWS = (
    "normal",
    "empty",
    "nothing",
    "threads",
    "deep300",
    "deep301",
    "deep1800",
    "bytes",
    "windows",
    "rounding",
    "numbers",
    "large",
)


class Files:
    """What test_export wrote, and what it printed."""

    def __init__(self, folder: Path, output: str) -> None:
        self.folder = folder
        self.output = output

    def read(self, view: str, ending: str) -> bytes:
        return (self.folder / f"{view}.{ending}").read_bytes()

    def truth(self, view: str) -> Any:
        return json.loads(self.read(view, "truth"))

    def spark(self, view: str) -> Message:
        return sparkcheck.load(self.read(view, "sparkprofile"))

    @lru_cache(maxsize=2)  # noqa: B019
    def pprof(self, view: str) -> pprofcheck.Profile:
        return pprofcheck.load(self.read(view, "pb.gz"))

    def json(self, view: str) -> Any:
        return json.loads(self.read(view, "json"))

    def collapsed(self, view: str) -> list[tuple[list[str], int]]:
        lines = self.read(view, "collapsed").decode("utf-8").splitlines()
        split = [line.rpartition(" ") for line in lines]
        return [(stack.split(";"), int(weight)) for stack, _, weight in split]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    if not PROGRAM.exists():
        pytest.skip(f"test_export is not built: {PROGRAM}")
    folder = tmp_path_factory.mktemp("formats")
    run = subprocess.run(
        [PROGRAM, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    return Files(folder, run.stdout)


def non_zero(values: Any) -> list[float]:
    """For comparing what belongs to functions without naming them."""
    return sorted(value for value in values if value > 1e-6)
