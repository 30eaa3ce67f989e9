# SPDX-License-Identifier: Apache-2.0
"""Packages of PyPI that single tests need for an interpreter, kept out of the one profiled.

They are fetched by the Python that runs the tests: an interpreter in a root of its own
has no network.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD, Python

ABI = "import sys; print('{}.{}'.format(*sys.version_info), sys.abiflags)"


def folder(python: Python, *packages: str) -> Path:
    """A folder for PYTHONPATH with the packages' wheels in it; skips where there is none."""
    version, _, flags = python.run("-c", ABI).stdout.strip().partition(" ")
    return _folder(version, flags, packages)


def _folder(version: str, flags: str, packages: tuple[str, ...]) -> Path:
    wanted = " ".join((version, flags, *packages))
    target = BUILD / "extras" / hashlib.sha256(wanted.encode()).hexdigest()[:16]
    if not target.exists():
        _fetch(target, packages, version, flags)
    return target


def _fetch(target: Path, packages: tuple[str, ...], version: str, flags: str) -> None:
    fresh = target.with_suffix(".part")
    shutil.rmtree(fresh, ignore_errors=True)
    abi = f"cp{version.replace('.', '')}{flags}"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", fresh]
    command += ["--only-binary", ":all:", "--python-version", version, "--abi", abi, *packages]
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no wheel of {', '.join(packages)} for {abi}: {done.stderr.strip()[-200:]}")
    fresh.rename(target)


def of_tests(*packages: str) -> Path:
    """The same for the Python that runs the tests."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return _folder(version, "", packages)
