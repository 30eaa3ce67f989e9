# SPDX-License-Identifier: Apache-2.0
"""The run gate stops what is planted, and a real profiled run passes it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
GATE_BUILD = Path(os.environ.get("PYROMETER_GATE_BUILD", ROOT / "build" / "gate"))
LIBRARY = GATE_BUILD / "libpyrometer.so"
CC = os.environ.get("CC", "gcc").split()
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-U_FORTIFY_SOURCE", "-Wall", "-Wextra", "-Werror"]

WATCHED = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "dl_iterate_phdr",
    "dladdr",
    "dlsym",
    "open",
    "openat",
]

pytestmark = [
    pytest.mark.skipif(shutil.which(CC[0]) is None, reason="no C compiler here"),
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the gate stands on glibc"),
]
needs_library = pytest.mark.skipif(not LIBRARY.exists(), reason=f"no {LIBRARY}")


def compile_c(source: str, target: Path, *flags: str) -> Path:
    command = [*CC, *FLAGS, *flags, str(HERE / source), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run_gate")
    return compile_c("run_gate.c", folder / "run_gate.so", "-shared", "-fPIC")


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run_gate_probe")
    return compile_c("run_gate_probe.c", folder / "probe", "-fno-builtin", "-pthread")


def run_under(gate: Path, *command: object, **extra: str) -> tuple[int, str]:
    environment = {**os.environ, "LD_PRELOAD": str(gate), "PYROMETER_GATE_REPORT": "1", **extra}
    environment.pop("PYROMETER", None)
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stderr


def handler_runs(report: str) -> int:
    found = re.search(r"^run gate: (\d+) handler runs", report, re.MULTILINE)
    assert found is not None, report
    return int(found.group(1))


def test_quiet_handler_passes(gate: Path, probe: Path) -> None:
    status, report = run_under(gate, probe, "nothing")
    assert (status, handler_runs(report)) == (0, 1)


@pytest.mark.parametrize("function", WATCHED)
def test_planted_call_is_named(gate: Path, probe: Path, function: str) -> None:
    status, report = run_under(gate, probe, function)
    assert status == -signal.SIGABRT
    assert report == f"run gate: {function} called inside the signal handler\n"


@needs_library
def test_planted_malloc_in_the_library(gate: Path) -> None:
    load = HERE / "run_gate_load.py"
    status, report = run_under(gate, sys.executable, load, LIBRARY, PYROMETER_GATE_PLANT="1")
    assert status == -signal.SIGABRT, report
    assert report.endswith("run gate: malloc called inside the signal handler\n")


@needs_library
def test_real_run_passes(gate: Path) -> None:
    status, report = run_under(gate, sys.executable, HERE / "run_gate_load.py", LIBRARY)
    assert status == 0, report
    # 375 on a CPU of its own (1.5 s, 250 a second); the machine may be busy.
    assert handler_runs(report) >= 50
