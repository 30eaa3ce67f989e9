# SPDX-License-Identifier: Apache-2.0
"""The shadow stack against the thread's own frames, over everything that may disturb it.

The library of the oracle build (src/python/oracle.h has what equal means) runs
programs/matrix.py. For the record, with the table printed:

    PYROMETER_ORACLE_EVENTS=1e7 python -m pytest -s tests/python/test_oracle.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import extras
import pytest
from conftest import BUILD, ROOT, Python

pytestmark = pytest.mark.long

MATRIX = Path(__file__).parent / "programs" / "matrix.py"
ORACLE = BUILD / "oracle"
PACKAGE = BUILD / "oracle-package"
TOOLS = Path(sys.executable).parent

EVENTS = float(os.environ.get("PYROMETER_ORACLE_EVENTS", 1e6))
SECONDS = 20 if EVENTS <= 1e6 else 1200
ONE_IN = 10

COVERAGE = "coverage==7.17.5"
WITH_GEVENT = (
    COVERAGE,
    "greenlet==3.5.6",
    "gevent==26.9.0",
    "zope.event==6.2",
    "zope.interface==8.7",
)
WITHOUT_GEVENT = (COVERAGE, "greenlet==3.2.2")  # 3.13t: no wheel of gevent, an older greenlet

# What hatch_build.py does for the wheel, without its folder, which `make wheel` may be using.
GRAFT = "import hatch_build, pathlib, sys; p = pathlib.Path(sys.argv[1]); "
GRAFT += "hatch_build.graft(p / 'libpyrometer.so', p)"


@pytest.fixture(scope="session")
def package() -> Path:
    """A folder for PYTHONPATH with the package and the oracle build's library in it."""
    if not (ORACLE / "build.ninja").exists():
        build("meson", "setup", ORACLE, "-Doracle=true", "-Dtests=false")
    build("ninja", "-C", ORACLE)
    shutil.rmtree(PACKAGE, ignore_errors=True)
    shutil.copytree(ROOT / "python" / "pyrometer", PACKAGE / "pyrometer")
    shutil.copy2(ORACLE / "libpyrometer.so", PACKAGE / "pyrometer")
    build("python", "-c", GRAFT, PACKAGE / "pyrometer")
    return PACKAGE


def build(tool: str, *arguments: object) -> None:
    path = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(TOOLS / tool), *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def modules(python: Python) -> Path:
    packages = WITHOUT_GEVENT if python.version.endswith("t") else WITH_GEVENT
    return extras.folder(python, *packages)


def run(python: Python, path: list[Path], *arguments: object, **more: str) -> dict[str, Any]:
    done = python.run(
        MATRIX,
        *arguments,
        cwd=ROOT,
        timeout=SECONDS + 120,
        env={
            **os.environ,
            **more,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "PYROMETER_ORACLE": str(ONE_IN),
        },
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    row = ("python", "gil", "events", "compared", "different", "resyncs", "seconds", "healed")
    print(python.version, {key: found[key] for key in row})
    return found


def check(found: dict[str, Any]) -> None:
    assert found["state"] == "attributed"
    assert found["different"] == 0, "\n".join(found["examples"])
    assert found["frameless"] == 0
    assert found["compared"] > found["events"] / ONE_IN / 2 > 1000
    # Whatever entered and left in between, no stack was found wrong when a frame left it.
    assert found["healed"]["PY_RETURN"] == found["healed"]["PY_YIELD"] == 0


def test_no_stack_is_ever_wrong(python: Python, package: Path) -> None:
    found = run(python, [package, modules(python)], EVENTS, "--seconds", SECONDS)
    check(found)
    assert found["resyncs"] > 0
    assert found["depth_max"] > 900


def test_greenlet_imported_after_the_start(python: Python, package: Path) -> None:
    given = ("--seed", 2, "--late-greenlet", "--no-threads", "--seconds", SECONDS)
    check(run(python, [package, modules(python)], min(EVENTS, 3e5), *given))


def test_recursion_that_a_walk_has_met_before_its_start(python: Python, package: Path) -> None:
    """It showed frames twice: a walk in a finaliser met the frame that was about to enter."""
    given = ("--only", "too_deep_through_c", "--context", "traced_while_collecting")
    check(run(python, [package], min(EVENTS, 1e6), *given, "--no-threads", "--seconds", SECONDS))


def test_without_the_gil(python: Python, package: Path) -> None:
    """Apart, for greenlet and coverage switch it on again."""
    if not python.version.endswith("t"):
        pytest.skip(f"Python {python.version} has a GIL always")
    found = run(python, [package], EVENTS, "--seconds", SECONDS, PYTHON_GIL="0")
    check(found)
    assert not found["gil"]


@pytest.mark.usual_pythons
def test_a_planted_error_is_found(python: Python, package: Path) -> None:
    given = ("--only", "closed", "--context", "plain", "--no-threads", "--no-greenlet")
    found = run(python, [package], 1e4, *given, PYROMETER_ORACLE_PLANT="1")
    assert found["different"] > 0
    assert "\nshown (" in found["examples"][0]


def test_other_builds_hold_none_of_it(library: Path) -> None:
    names = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    assert "pm__python_start" in names
    assert "oracle" not in names
