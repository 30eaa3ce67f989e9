# SPDX-License-Identifier: Apache-2.0
"""The interpreters that are measured, each with what it needs in build/bench/cost/NAME/PACKAGE.

The folders are for PYTHONPATH, filled by the pip that runs us: an interpreter that lives in a
root of its own need not have a network (see scripts/interpreters).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/bench/cost"
CACHE = Path(os.environ.get("PYROMETER_CACHE") or Path.home() / ".cache/pyrometer")
WHEEL = "pyrometer"
BROUGHT = ("3.13t", "3.14", "3.15")


@dataclass
class Interpreter:
    name: str
    path: Path

    @property
    def folder(self) -> Path:
        return BUILD / self.name

    def command(self, *arguments: object) -> list[str]:
        return [str(self.path), *map(str, arguments)]

    def environment(self) -> dict[str, str]:
        ours = {
            "PYTHONPATH": ":".join(map(str, sorted(self.folder.glob("*/")))),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "",
            "PYROMETER_BENCH_FLOOR": str(BUILD / "floor.so"),
        }
        return {**os.environ, **ours}


def find(names: list[str]) -> list[Interpreter]:
    """Those of `names` that are there; the others are told."""
    found = []
    for name in names:
        path = _find(name)
        if path is None:
            print(f"Python {name} is not there")
        else:
            found.append(Interpreter(name, path))
    return found


def _find(name: str) -> Path | None:
    if name in BROUGHT:
        path = CACHE / "interpreters" / name / "python"
        return path if path.exists() else None
    done = subprocess.run(
        [ROOT / "scripts/find-python", name], capture_output=True, text=True, check=False
    )
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def set_up(interpreters: list[Interpreter], *, with_peers: bool) -> None:
    _build_floor()
    for python in interpreters:
        shutil.rmtree(python.folder / WHEEL, ignore_errors=True)
        _install(python, WHEEL, "--no-index", *map(str, (ROOT / "build/wheel").glob("*.whl")))
        peers = _releases("peers.txt") if with_peers else []
        for release in [*_releases("requirements.txt"), *peers]:
            _provide(python, release)


def _build_floor() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    sources = [
        ROOT / "src" / name for name in ("python/api.c", "python/callable.c", "base/loader.c")
    ]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-fPIC", "-fvisibility=hidden"]
    command = ["cc", *flags, "-shared", f"-I{ROOT / 'src'}", str(HERE / "floor.c")]
    command += [*map(str, sources), "-ldl", "-lpthread", "-o", str(BUILD / "floor.so")]
    subprocess.run(command, check=True)


def _releases(name: str) -> list[str]:
    lines = (HERE / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _provide(python: Interpreter, release: str) -> None:
    """Installs a package unless that is done, or was tried."""
    mark = python.folder / f"{release}.tried"
    if not mark.exists():
        python.folder.mkdir(parents=True, exist_ok=True)
        mark.write_text(_install(python, release, release))
    if missing := mark.read_text():
        print(missing)


def _install(python: Interpreter, name: str, *packages: str) -> str:
    """By the pip that runs us, for that interpreter; "", or why not."""
    number = python.name.removesuffix("t")
    abis = ["cp" + python.name.replace(".", ""), "abi3", "none"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--target", str(python.folder / name), "--only-binary", ":all:"]
    command += ["--python-version", number, *(part for abi in abis for part in ("--abi", abi))]
    command += packages
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    if "No matching distribution" in done.stderr:
        return f"no wheel of {name} for Python {python.name}"
    raise SystemExit(f"pip: {done.stderr}")
