# SPDX-License-Identifier: Apache-2.0
"""What the Python tests stand on: the built wheel, installed for every interpreter.

Fixtures:
  library       path of build/libpyrometer.so, up to date
  python        one test each for 3.12 and 3.13: a Python with the wheel and the
                programs of requirements.txt; a missing one is skipped by name
  old_python    the same with Python 3.11, without those programs
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PROGRAMS = Path(__file__).with_name("requirements.txt")
VERSIONS = ("3.12", "3.13")
OLD_VERSION = "3.11"
TIMEOUT = 120  # seconds, for one program


@dataclass(frozen=True)
class Python:
    """A virtual environment with the wheel in it."""

    version: str
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def pyrometer(self) -> Path:
        return self.folder / "bin" / "pyrometer"

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
    found = _run([ROOT / "scripts" / "find-python", version])
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
    return _environment(request.param, wheel, with_programs=True)


@pytest.fixture(scope="session")
def old_python(wheel: Path) -> Python:
    return _environment(OLD_VERSION, wheel, with_programs=False)


def _environment(version: str, wheel: Path, *, with_programs: bool) -> Python:
    """A venv under build/venvs, made anew when the wheel or the programs have changed."""
    interpreter = _find(version)
    folder = BUILD / "venvs" / version
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        state = hashlib.sha256(str(interpreter).encode())
        if with_programs:
            state.update(PROGRAMS.read_bytes())
        _renew(
            folder,
            "programs",
            state.hexdigest(),
            lambda: _create(interpreter, folder, with_programs),
        )
        state.update(wheel.read_bytes())
        _renew(folder, "wheel", state.hexdigest(), lambda: _install(folder, wheel))
    return Python(version, folder / "venv")


def _locked(folder: Path) -> Any:
    handle = (folder / "lock").open("w")
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _renew(folder: Path, what: str, state: str, renew: Callable[[], None]) -> None:
    mark = folder / what
    if not mark.exists() or mark.read_text() != state:
        renew()
        mark.write_text(state)


def _create(interpreter: Path, folder: Path, with_programs: bool) -> None:
    shutil.rmtree(folder / "venv", ignore_errors=True)
    (folder / "wheel").unlink(missing_ok=True)
    _must(interpreter, "-m", "venv", folder / "venv")
    if with_programs:
        _must(folder / "venv/bin/python", "-m", "pip", "install", "--quiet", "-r", PROGRAMS)


def _install(folder: Path, wheel: Path) -> None:
    pip = (folder / "venv/bin/python", "-m", "pip", "install", "--quiet")
    _must(*pip, "--no-deps", "--force-reinstall", wheel)


def _must(*command: object) -> None:
    done = _run(list(command), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
