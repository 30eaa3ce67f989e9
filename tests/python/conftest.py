# SPDX-License-Identifier: Apache-2.0
"""What the Python tests stand on: the built wheel, installed for every interpreter.

Fixtures:
  library       path of build/libpyrometer.so, up to date
  python        one test each for every interpreter: a Python with the wheel and the
                programs of requirements.txt; a missing one is skipped by name
  old_python    the same with Python 3.11, without those programs

3.12 and 3.13 are found on the machine. 3.13t, 3.14 and 3.15 are brought by scripts/interpreters
and tested where they are there. PYROMETER_TEST_PYTHONS="3.12 3.15" asks for others.

Marks, for a test or a whole file:
  usual_pythons    3.12 and 3.13 are enough, nothing here depends on the interpreter
  every_python     but this test runs on all of them all the same
  long             storms and long runs, left to `make test-long`
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PROGRAMS = Path(__file__).with_name("requirements.txt")
CACHE = Path(os.environ.get("PYROMETER_CACHE") or Path.home() / ".cache/pyrometer")
INTERPRETERS = CACHE / "interpreters"
USUAL_VERSIONS = ("3.12", "3.13")
BROUGHT_VERSIONS = ("3.13t", "3.14", "3.15")
OLD_VERSION = "3.11"
# Where the release that requirements.txt names has no wheel for a version, but another has.
OTHER_RELEASES = {("3.13t", "numpy"): "numpy==2.4.6"}
TIMEOUT = 120  # seconds, for one program


def _versions() -> tuple[str, ...]:
    wanted = os.environ.get("PYROMETER_TEST_PYTHONS")
    if wanted:
        return tuple(wanted.split())
    there = (version for version in BROUGHT_VERSIONS if (INTERPRETERS / version / "run").exists())
    return (*USUAL_VERSIONS, *there)


VERSIONS = _versions()


def pytest_report_header() -> str:
    left = [version for version in (*USUAL_VERSIONS, *BROUGHT_VERSIONS) if version not in VERSIONS]
    return f"interpreters: {' '.join(VERSIONS)}" + (f"; not {' '.join(left)}" if left else "")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "usual_pythons: runs on 3.12 and 3.13 only")
    config.addinivalue_line("markers", "long: storms and long runs, for make test-long")
    config.addinivalue_line("markers", "every_python: runs on all, whatever the file's mark says")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if not _is_meant(item)])
    items[:] = filter(_is_meant, items)


def _is_meant(item: pytest.Item) -> bool:
    """Whether the test is to run on the Python it has got."""
    callspec = getattr(item, "callspec", None)
    version = callspec.params.get("python") if callspec else None
    if version is None or version in USUAL_VERSIONS or item.get_closest_marker("every_python"):
        return True
    return item.get_closest_marker("usual_pythons") is None


@dataclass(frozen=True)
class Python:
    """A virtual environment with the wheel in it."""

    version: str
    folder: Path
    commands: Path  # the folder of its `python` and `pyrometer` as they can be run from here

    @property
    def path(self) -> Path:
        return self.commands / "python"

    @property
    def pyrometer(self) -> Path:
        return self.commands / "pyrometer"

    def run(self, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        """`python ARGUMENTS`; output and errors as text, the exit status not checked."""
        return _run([self.path, *arguments], **options)

    def profile(self, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        """`pyrometer run ARGUMENTS`, likewise."""
        return self.pyrometer_command("run", *arguments, **options)

    def pyrometer_command(
        self, *arguments: object, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """`pyrometer ARGUMENTS`, likewise."""
        return _run([self.pyrometer, *arguments], **options)

    def need(self, program: str) -> None:
        """Skips the test by name where this Python cannot have a program of requirements.txt."""
        missing = _provide(self, program)
        if missing:
            pytest.skip(missing)


def _run(command: list[object], **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"stdin": subprocess.DEVNULL, "timeout": TIMEOUT, "check": False, **options}
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, **options
    )


def _make(target: str) -> None:
    made = _run(["make", target], cwd=ROOT, timeout=900)
    if made.returncode != 0:
        pytest.exit(f"`make {target}` failed:\n{made.stdout}{made.stderr}", returncode=1)


def _find(version: str) -> Path:
    if version in BROUGHT_VERSIONS:
        if not (INTERPRETERS / version / "run").exists():
            pytest.skip(f"Python {version} is not there: scripts/interpreters {version} brings it")
        return INTERPRETERS / version / "python"
    found = _run([ROOT / "scripts/find-python", version])
    if found.returncode != 0:
        pytest.skip(found.stderr.strip())
    return Path(found.stdout.strip())


@pytest.fixture(scope="session")
def library() -> Path:
    _make("build")
    return BUILD / "libpyrometer.so"


@pytest.fixture(scope="session")
def wheel() -> Path:
    _make("wheel")
    (wheel,) = (BUILD / "wheel").glob("*.whl")
    return wheel


@pytest.fixture(scope="session", params=VERSIONS)
def python(request: pytest.FixtureRequest, wheel: Path) -> Python:
    python = _environment(request.param, wheel)
    for program in _programs():
        _provide(python, program)
    return python


@pytest.fixture(scope="session")
def old_python(wheel: Path) -> Python:
    return _environment(OLD_VERSION, wheel)


def _environment(version: str, wheel: Path) -> Python:
    """A venv under build/venvs, made anew when the interpreter has changed."""
    interpreter = _find(version)
    says = _run([interpreter, "-VV"])
    if says.returncode != 0:
        pytest.skip(f"Python {version} is there but does not run: {says.stderr.strip()}")
    folder = BUILD / "venvs" / version
    commands = folder / ("commands" if _in_root(version) else "venv/bin")
    python = Python(version, folder, commands)
    state = f"{interpreter} {says.stdout}"
    with _locked(folder):
        _renew(folder / "created", state, lambda: _create(interpreter, python))
        state += hashlib.sha256(wheel.read_bytes()).hexdigest()
        _renew(folder / "wheel", state, lambda: _install(python, "--force-reinstall", wheel))
    return python


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _renew(mark: Path, state: str, renew: Callable[[], None]) -> None:
    if not mark.exists() or mark.read_text() != state:
        renew()
        mark.write_text(state)


def _create(interpreter: Path, python: Python) -> None:
    for old in ("venv", "commands", "packages", "wheels"):
        shutil.rmtree(python.folder / old, ignore_errors=True)
    (python.folder / "wheel").unlink(missing_ok=True)
    venv = python.folder / "venv"
    if not _in_root(python.version):
        _must(interpreter, "-m", "venv", venv)
        return
    enter = (INTERPRETERS / python.version / "run", "--bind", ROOT)
    _must(*enter, f"/usr/bin/python{python.version}", "-m", "venv", venv)
    python.commands.mkdir()
    for command in (python.path, python.pyrometer):
        inside = shlex.join(map(str, [*enter, venv / "bin" / command.name]))
        command.write_text(f'#!/bin/sh\nexec {inside} "$@"\n')
        command.chmod(0o755)


def _in_root(version: str) -> bool:
    """Whether an interpreter has a root of its own: its venv's link to it is good there only."""
    return (INTERPRETERS / version / "root").exists()


def _install(python: Python, *arguments: object) -> None:
    _must(python.path, "-m", "pip", "install", "--quiet", "--no-index", *arguments)


def _programs() -> dict[str, str]:
    """The lines of requirements.txt by their names."""
    lines = [line for line in PROGRAMS.read_text().splitlines() if "==" in line]
    return {line.partition("==")[0]: line for line in lines}


def _provide(python: Python, program: str) -> str:
    """Installs a program unless that is done; "", or why it cannot be."""
    release = OTHER_RELEASES.get((python.version, program), _programs()[program])
    mark = python.folder / "packages" / release
    with _locked(python.folder):
        if not mark.exists():
            missing = _download_and_install(python, release)
            mark.parent.mkdir(exist_ok=True)
            mark.write_text(missing)
    return mark.read_text()


def _download_and_install(python: Python, release: str) -> str:
    """By the pip that runs us: a root need not have a network, nor this machine's certificates."""
    number = python.version.removesuffix("t")
    abi = "cp" + python.version.replace(".", "")
    wheels = python.folder / "wheels"
    target = ["--python-version", number, "--abi", abi, "--abi", "abi3", "--abi", "none"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    done = _run([*pip, *target, "--only-binary", ":all:", "-d", wheels, release], timeout=900)
    offline = "connection broken" in done.stderr
    if "No matching distribution found" in done.stderr and not offline:
        return f"{release} has no wheel for Python {python.version}"
    assert done.returncode == 0, done.stderr
    _install(python, "--find-links", wheels, release)
    return ""


def _must(*command: object) -> None:
    done = _run(list(command), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
