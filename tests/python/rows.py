# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of the log report, and nothing that is not exactly such a row."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

PROCESS = re.compile(
    r"\[profile\] pid=(?P<pid>\d+) ppid=(?P<ppid>\d+) window=(?P<window>\d+) "
    r"seconds=(?P<seconds>[\d.]+) (?:cores=(?P<cores>[\d.]+) samples=(?P<samples>\d+) "
    r"attributed=(?P<attributed>[\d.]+)% overhead=(?P<overhead>[\d.]+)%"
    r"|idle: (?P<idle>[\d.]+) s of CPU)(?: rows_dropped=(?P<dropped>\d+))?"
)
THREAD = re.compile(
    r'\[profile\] thread "(?P<name>(?:[^"\\]|\\.)*)" tid=(?P<tid>\d+) cores=(?P<cores>[\d.]+) '
    r"sampled=(?P<sampled>[\d.]+)(?: unsampled: (?P<reason>.+))?"
)
ACTIVE = re.compile(r"\[profile\] (?P<count>\d+) functions active in the last [\d.]+s")
FUNCTION = re.compile(
    r"\[profile\] tottime=(?P<tottime>[\d.]+)s cumtime=(?P<cumtime>[\d.]+)s "
    r"ncalls=(?P<ncalls>~?\d+|-) (?P<name>.*)"
)
REMARK = re.compile(
    r"\[profile\] (no Python frames: .*|estimates: calls were counted in [\d.]+% of the CPU, "
    r"tottime is within [\d.]+s|\d+ more threads cores=[\d.]+)"
)


@dataclass
class Report:
    pid: int
    window: int
    seconds: float
    cores: float
    idle: bool
    dropped: int
    threads: dict[str, float] = field(default_factory=dict)  # name: cores
    functions: list[tuple[str, float, float, str]] = field(default_factory=list)  # tot, cum, calls


def read(text: str) -> list[Report]:
    """All reports in a log; lines without the tag are the program's own."""
    reports: list[Report] = []
    for line in text.splitlines():
        if line.startswith("[profile]"):
            _read_row(line, reports)
    return reports


def marked(text: str, mark: str) -> str:
    """The rows of a log that bear a mark, without it."""
    start = f"[profile {mark}]"
    lines = [line for line in text.splitlines() if line.startswith(start)]
    return "\n".join(line.replace(start, "[profile]", 1) for line in lines)


def _read_row(line: str, reports: list[Report]) -> None:
    if match := PROCESS.fullmatch(line):
        reports.append(
            Report(
                pid=int(match["pid"]),
                window=int(match["window"]),
                seconds=float(match["seconds"]),
                cores=float(match["cores"] or 0),
                idle=match["idle"] is not None,
                dropped=int(match["dropped"] or 0),
            )
        )
    elif match := THREAD.fullmatch(line):
        reports[-1].threads[match["name"]] = float(match["cores"])
    elif match := FUNCTION.fullmatch(line):
        reports[-1].functions.append(
            (match["name"], float(match["tottime"]), float(match["cumtime"]), match["ncalls"])
        )
    else:
        assert ACTIVE.fullmatch(line) or REMARK.fullmatch(line), f"no row: {line!r}"
