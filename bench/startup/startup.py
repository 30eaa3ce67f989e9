# SPDX-License-Identifier: Apache-2.0
"""What it adds to the start of an interpreter. Usage: startup.py PYTHON...

Each PYTHON has the package. Two empty venvs are made of it, one with the package's files,
and started in turn: the shortest start of each kind, and the median. Then 200 children
of an armed parent, by subprocess.run, every second one without the variable; and a
program that is no Python, with the library preloaded.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TURNS = 60
CHILDREN = 200
SETTINGS = json.dumps({"every": 1})
PARENT = """
import json, os, subprocess, sys, time
plain = {name: value for name, value in os.environ.items() if name != "PYROMETER"}
taken = {True: [], False: []}
for turn in range(2 * int(sys.argv[1])):
    armed = turn % 2 == 0
    start = time.perf_counter()
    child = [sys.executable, "-c", "pass"]
    subprocess.run(child, check=True, env=os.environ if armed else plain)
    taken[armed].append(time.perf_counter() - start)
print(json.dumps([taken[True], taken[False], os.getpid()]))
"""


def environment(settings: str | None) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name != "PYROMETER"}
    return variables if settings is None else {**variables, "PYROMETER": settings}


def start(command: list[str | Path], variables: dict[str, str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, env=variables)
    return time.perf_counter() - begin


def show(what: str, taken: list[float], against: list[float]) -> None:
    shortest, median = min(taken), statistics.median(taken)
    line = f"  {what:28} {shortest * 1e3:7.2f} {median * 1e3:7.2f} ms"
    if taken is not against:
        added = shortest - min(against), median - statistics.median(against)
        line += f"   adds {added[0] * 1e3:5.2f} {added[1] * 1e3:5.2f} ms"
    print(line)


def site(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.check_output([python, "-c", code], text=True).strip())


def make_venvs(python: Path, folder: Path) -> list[Path]:
    """Without the package, with an empty .pth file, with the package, and nothing else in them."""
    venvs = [folder / name / "bin/python" for name in ("absent", "empty", "present")]
    for venv in venvs:
        subprocess.run([python, "-m", "venv", "--without-pip", venv.parents[1]], check=True)
    (site(venvs[1]) / "empty.pth").touch()
    for part in site(python).glob("pyrometer*"):
        copy = shutil.copytree if part.is_dir() else shutil.copy
        copy(part, site(venvs[2]) / part.name)
    return venvs


def measure_starts(absent: Path, empty: Path, present: Path) -> None:
    kinds = (
        ("package absent", absent, None),
        ("an empty .pth file", empty, None),
        ("PYROMETER unset", present, None),
        ("PYROMETER set", present, SETTINGS),
    )
    taken: dict[str, list[float]] = {kind: [] for kind, _, _ in kinds}
    for _ in range(TURNS):
        for kind, program, settings in kinds:
            taken[kind].append(start([program, "-c", "pass"], environment(settings)))
    for kind, _, _ in kinds:
        show(kind, taken[kind], taken[kinds[0][0]])


def measure_children(python: Path) -> None:
    command = [python, "-c", PARENT, str(CHILDREN)]
    done = subprocess.run(
        command, check=True, env=environment(SETTINGS), capture_output=True, text=True
    )
    armed, plain, parent = json.loads(done.stdout)
    rows = [line for line in done.stderr.splitlines() if "pid=" in line]
    others = [line for line in rows if f" pid={parent} " not in line]
    show(f"{CHILDREN} children, unset", plain, plain)
    show(f"{CHILDREN} children, armed", armed, plain)
    print(f"  reports: {len(rows) - len(others)} of the parent's, {len(others)} of theirs")


def measure_preload(library: Path) -> None:
    plain = environment(None)
    preloaded = {**plain, "LD_PRELOAD": str(library)}
    kinds = {
        "/bin/true": plain,
        "preloaded, PYROMETER unset": preloaded,
        "preloaded, PYROMETER set": {**preloaded, "PYROMETER": SETTINGS},
    }
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(5 * TURNS):
        for kind, variables in kinds.items():
            taken[kind].append(start(["/bin/true"], variables))
    for kind, times in taken.items():
        show(kind, times, taken["/bin/true"])


def main() -> None:
    for argument in sys.argv[1:]:
        python = Path(argument)
        print(subprocess.check_output([python, "-VV"], text=True).strip())
        print(f"  {'':28} {'least':>7} {'median':>7}")
        with tempfile.TemporaryDirectory() as folder:
            venvs = make_venvs(python, Path(folder))
            measure_starts(*venvs)
            measure_children(venvs[-1])
            measure_preload(site(venvs[-1]) / "pyrometer/libpyrometer.so")


main()
