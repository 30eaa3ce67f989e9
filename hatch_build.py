# SPDX-License-Identifier: Apache-2.0
"""The wheel's build: compiles libpyrometer.so, grafts what it needs beside it, sets the tag.

PYROMETER_LIBRARY names a library that is built already (`make wheel` does), so that
what the tests install is what the build made.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What every Linux with a glibc has.
SYSTEM = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libpthread|libdl|librt)\.so\b.*")


class LibraryHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds libpyrometer.so and its grafted libraries to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        work = root / "build" / "wheel-library"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        built = os.environ.get("PYROMETER_LIBRARY")
        library = work / "libpyrometer.so"
        shutil.copy2(Path(built) if built else compile_library(root, work / "meson"), library)
        for file in [library, *graft(library, work)]:
            run("strip", "--strip-debug", str(file))
            build_data["force_include"][str(file)] = f"pyrometer/{file.name}"
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False


def compile_library(root: Path, folder: Path) -> Path:
    """Builds the library alone, from scratch."""
    check = subprocess.run(
        ["bash", str(root / "scripts" / "system-packages"), "--check"], check=False
    )
    if check.returncode != 0:
        sys.exit(1)  # it has said what is missing
    run("meson", "setup", str(folder), str(root), "-Dtests=false")
    run("meson", "compile", "-C", str(folder))
    return folder / "libpyrometer.so"


def graft(library: Path, folder: Path) -> list[Path]:
    """Copies the libraries that `library` loads into `folder`, under names of our own.

    With their usual names the process's own libelf or libz could not be loaded any
    more: the loader takes what has that name already, whatever its version.
    """
    needed = resolve(library)
    names = {name: f"libpyrometer-{name.removeprefix('lib')}" for name in needed}
    for name, path in needed.items():
        copy = folder / names[name]
        shutil.copyfile(path, copy)
        run("patchelf", "--set-soname", copy.name, str(copy))
    grafts = [folder / name for name in names.values()]
    for file in [library, *grafts]:
        rename_needed(file, names)
        run("patchelf", "--set-rpath", "$ORIGIN", str(file))
    return grafts


def resolve(library: Path) -> dict[str, str]:
    """Every library that is loaded with `library` and does not belong to the C library."""
    lines = run("ldd", str(library)).splitlines()
    found = dict(re.findall(r"^\s*(\S+) => (\S+) \(0x", "\n".join(lines), re.MULTILINE))
    missing = [line.split()[0] for line in lines if "not found" in line]
    if missing:
        sys.exit(f"libraries of the system are missing: {' '.join(missing)}")
    return {name: path for name, path in found.items() if not SYSTEM.fullmatch(name)}


def rename_needed(file: Path, names: dict[str, str]) -> None:
    needed = run("patchelf", "--print-needed", str(file)).split()
    for name in needed:
        if name in names:
            run("patchelf", "--replace-needed", name, names[name], str(file))


def run(*command: str) -> str:
    """Runs a tool of the build; what it printed is told when it fails."""
    try:
        result = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit(f"{command[0]} was not found: it is needed to build pyrometer")
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")
    return result.stdout
