#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The link gate: proves from object files what the signal handler can reach.

It joins the objects of src/signal with `ld -r` and requires that what is still
undefined stands in allowed_symbols.txt. It refuses thread-local storage whose
access calls a function (which may allocate), and objects made for link-time
optimisation (into which nobody can look).
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ALLOWED = Path(__file__).with_name("allowed_symbols.txt")
OBJECTS = "src_signal_*.c.o"
# The general and local dynamic models and descriptors; initial-exec and local-exec call nothing.
CALLING_TLS = re.compile(r"^R_\w+_(TLSGD|TLSLD|\w*TLSDESC)")


class GateError(Exception):
    """The gate could not look: a tool failed, or there is nothing to look at."""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GateError(f"{' '.join(command[:3])} ...: {done.stderr.strip()}")
    return done.stdout


def read_allowed(path: Path) -> list[str]:
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def objects_under(folder: Path) -> dict[Path, list[Path]]:
    """The handler's objects by the target they were built for.

    Test programs link a part of them only, and a gate build reaches for the run
    gate: neither is what is shipped.
    """
    targets: dict[Path, list[Path]] = {}
    for path in sorted(folder.rglob(OBJECTS)):
        inner = path.relative_to(folder).parts
        if "gate" not in inner and path.parent.name.startswith("lib"):
            targets.setdefault(path.parent, []).append(path)
    return targets


class Gate:
    def __init__(self, allowed: list[str], tools_prefix: str = "") -> None:
        self.allowed = allowed
        self.ld, self.nm, self.readelf = (tools_prefix + t for t in ("ld", "nm", "readelf"))

    def undefined(self, path: Path) -> set[str]:
        lines = run(self.nm, "-u", str(path)).splitlines()
        return {line.split()[-1] for line in lines if line.strip()}

    def foreign_symbols(self, objects: list[Path]) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            joined = Path(folder) / "signal.o"
            run(self.ld, "-r", "-o", str(joined), *map(str, objects))
            missing = self.undefined(joined)
        foreign = [
            name
            for name in sorted(missing)
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.allowed)
        ]
        needed = {path: self.undefined(path) for path in objects} if foreign else {}
        return [
            f"{name}: needed by {', '.join(p.name for p in objects if name in needed[p])}, "
            f"not in {ALLOWED.name}"
            for name in foreign
        ]

    def calling_tls(self, path: Path) -> list[str]:
        found: set[str] = set()
        for line in run(self.readelf, "-rW", str(path)).splitlines():
            columns = line.split()
            if len(columns) >= 3 and CALLING_TLS.match(columns[2]):
                symbol = columns[4] if len(columns) > 4 else "?"
                found.add(f"{symbol}: thread-local access by a call ({columns[2]}) in {path.name}")
        return sorted(found)

    def lto(self, path: Path) -> list[str]:
        if ".gnu.lto_" not in run(self.readelf, "-SW", str(path)):
            return []
        return [f"{path.name}: built with -flto, which hides what it calls"]

    def violations(self, objects: list[Path]) -> list[str]:
        hidden = [line for path in objects for line in self.lto(path)]
        tls = [line for path in objects for line in self.calling_tls(path)]
        return hidden or self.foreign_symbols(objects) + tls


def collect(paths: list[Path]) -> list[list[Path]]:
    """Each item is a set of objects that is joined and judged by itself."""
    files = [path for path in paths if not path.is_dir()]
    groups = [files] if files else []
    for folder in (path for path in paths if path.is_dir()):
        targets = objects_under(folder)
        if not targets:
            raise GateError(f"no lib*/{OBJECTS} under {folder}")
        groups.extend(targets.values())
    return groups


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="BUILD_DIR_OR_OBJECT")
    parser.add_argument("--allowed", type=Path, default=ALLOWED, help="the list of symbols")
    parser.add_argument("--tools-prefix", default="", help="such as aarch64-linux-gnu-")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        gate = Gate(read_allowed(options.allowed), options.tools_prefix)
        groups = collect(options.paths)
        violations = [line for group in groups for line in gate.violations(group)]
    except (GateError, OSError) as error:
        print(f"link gate: {error}", file=sys.stderr)
        return 1
    for line in violations:
        print(f"link gate: {line}", file=sys.stderr)
    if not violations:
        print(f"link gate: {sum(map(len, groups))} objects reach nothing but {ALLOWED.name}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
