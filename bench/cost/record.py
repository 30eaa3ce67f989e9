# SPDX-License-Identifier: Apache-2.0
"""Runs a program of known parts under one subject and tells what that says of each part.

record.py SUBJECT PROGRAM. One line of JSON: {"said": {part: weight}, "truth": {part: seconds}}
or {"skipped": why}. A weight is all time in which the part's function was on the stack; what
a profiler shows as its own cost is not the program's.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import subjects

sys.path.insert(0, str(Path(__file__).with_name("programs")))

Weights = Counter[str]


def of_collapsed(path: Path, parts: Iterable[str]) -> Weights:
    weights: Weights = Counter()
    for line in path.read_text().splitlines():
        stack, weight = line.rsplit(" ", 1)
        if not stack.endswith(";[pyrometer]"):
            weights += {part: int(weight) for part in parts if re.search(rf"\b{part}\b", stack)}
    return weights


def of_cprofile(subject: Any) -> Weights:
    import pstats

    stats: dict[Any, Any] = pstats.Stats(subject.profile).stats  # type: ignore[attr-defined]
    return Counter({name: values[3] for (_, _, name), values in stats.items()})


def of_yappi(subject: Any) -> Weights:
    return Counter({one.name: one.ttot for one in subject.module.get_func_stats()})


def of_pyinstrument(subject: Any) -> Weights:
    weights: Weights = Counter()
    waiting = [subject.profiler.last_session.root_frame()]
    while waiting:
        frame = waiting.pop()
        weights[frame.function] += frame.time
        waiting += frame.children
    return weights


def weights(name: str, subject: Any, output: Path, parts: list[str]) -> Weights:
    readers = {"cProfile": of_cprofile, "yappi": of_yappi, "pyinstrument": of_pyinstrument}
    reader = readers.get(name)
    if reader is not None:
        return reader(subject)
    if name.startswith("pyrometer"):
        import pyrometer

        pyrometer.export(output)
    return of_collapsed(output, parts) if output.exists() else Counter()


def make(name: str, output: Path) -> subjects.Subject:
    kind, *options = name.split()
    outside: dict[str, Any] = {"py-spy": subjects.PySpy, "profiling.sampling": subjects.Sampling}
    made: subjects.Subject
    made = outside[kind](*options, output=output) if kind in outside else subjects.subject(name)
    return made


def record(name: str, program: Any) -> dict[str, Any]:
    parts = [part.__name__ for part in program.PARTS]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "stacks.collapsed")
        try:
            with make(name, output) as subject:
                truth = program.main()
        except subjects.SkippedError as error:
            return {"skipped": str(error)}
        said = weights(name, subject, output, parts)
    return {"said": {part: said[part] for part in parts}, "truth": truth}


if __name__ == "__main__":
    print(json.dumps(record(sys.argv[1], importlib.import_module(sys.argv[2]))))
