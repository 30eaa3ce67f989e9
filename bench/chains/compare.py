# SPDX-License-Identifier: Apache-2.0
"""Stacks that never existed: Pyrometer and 3.15's profiling.sampling on the same loop.

compare.py SITE SECONDS PYTHON...: SITE is a folder with the unpacked wheel, each PYTHON a
command. The loop is tests/python/programs/chains.py, two chains of calls that take turns:
a stack with frames of both, or in another order, was never there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "python"
PROGRAM = TESTS / "programs" / "chains.py"
RATE = 250
sys.path.insert(0, str(TESTS))

import chains_judge  # noqa: E402
import collapsed  # noqa: E402

ARMED = """
import json, runpy, sys
import pyrometer
program, seconds, stacks, facts = sys.argv[1:]
pyrometer.start(rate={rate})
sys.argv = [program, seconds]
runpy.run_path(program, run_name="__main__")
pyrometer.stop()
pyrometer.export(stacks)
with open(facts, "w") as file:
    json.dump(pyrometer.snapshot(), file)
"""

Frame = tuple[str, int]  # function, line (0: not known)


@dataclass
class Result:
    profiler: str
    python: str
    samples: int
    failed: int  # samples that came to nothing
    outside: float = 0.0  # of all: stands outside the loop, or has no Python frame
    judged: Counter[str] = field(default_factory=Counter)
    wrong_line: float = 0.0  # right functions, but a line that calls another one
    examples: list[str] = field(default_factory=list)

    def add(self, frames: list[Frame], weight: float) -> None:
        own = [frame for frame in frames if frame[0] in chains_judge.FUNCTIONS]
        if not own:
            self.outside += weight
            return
        names = [name for name, _ in own]
        verdict = chains_judge.judge(names)
        self.judged[verdict] += weight
        if verdict == chains_judge.IMPOSSIBLE:
            self.examples.append(" > ".join(names))
        if verdict == chains_judge.WHOLE and not lines_are_right(own):
            self.wrong_line += weight

    def row(self) -> list[str]:
        total = self.outside + sum(self.judged.values())

        def percent(value: float) -> str:
            return "0" if value == 0 else f"{100 * value / total:.3f} %"

        tried = self.samples + self.failed
        return [
            self.profiler,
            self.python,
            str(self.samples),
            "0" if self.failed == 0 else f"{100 * self.failed / tried:.1f} %",
            percent(self.judged[chains_judge.IMPOSSIBLE]),
            percent(self.judged[chains_judge.CUT_SHORT]),
            percent(self.wrong_line),
            percent(self.outside),
        ]


HEAD = [
    *("profiler", "Python", "samples", "failed samples"),
    *("impossible", "cut short", "wrong call line", "no frame of the loop"),
]


def call_lines() -> dict[tuple[str, str], int]:
    """(caller, callee): the line of the call."""
    lines, caller = {}, ""
    for number, line in enumerate(PROGRAM.read_text().splitlines(), 1):
        if match := re.match(r"def (\w+)", line):
            caller = match[1]
        elif match := re.match(r"\s+(\w+)\(\)$", line):
            lines[caller, match[1]] = number
    return lines


CALLS = call_lines()


def lines_are_right(frames: list[Frame]) -> bool:
    pairs = zip(frames, frames[1:])
    return all(
        line == 0 or line == CALLS.get((caller, callee)) for (caller, line), (callee, _) in pairs
    )


def version_of(python: str) -> str:
    code = "import sys; print('%d.%d.%d' % sys.version_info[:3] + getattr(sys, 'abiflags', ''))"
    return run([python, "-c", code]).strip()


def run(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def pyrometer(python: str, site: str, seconds: str, folder: str) -> Result:
    stacks, facts_file = Path(folder, "stacks.collapsed"), Path(folder, "facts.json")
    code = ARMED.format(rate=RATE)
    command = [python, "-c", code, str(PROGRAM), seconds, str(stacks), str(facts_file)]
    run(command, PYTHONPATH=site)
    facts = json.loads(facts_file.read_text())
    assert facts["signals"] == facts["stored"] + sum(facts["lost"].values())
    result = Result(
        f"Pyrometer, {RATE} Hz", version_of(python), facts["stored"], sum(facts["lost"].values())
    )
    for stack in collapsed.read(stacks):
        result.add([(name.rpartition(".")[2], 0) for name in stack.python], stack.weight)
    return result


def sampling(python: str, seconds: str, folder: str, rate: int, *options: str) -> Result:
    stacks = Path(folder, "stacks.txt")
    command = [
        *(python, "-m", "profiling.sampling", "run", "--collapsed", "-o", str(stacks)),
        *("-r", str(rate), *options, str(PROGRAM), seconds),
    ]
    said = run(command)
    good = sum(int(line.rsplit(" ", 1)[1]) for line in stacks.read_text().splitlines())
    captured = int(re.search(r"Captured ([\d,]+) samples", said)[1].replace(",", ""))  # type: ignore[index]
    name = " ".join(["profiling.sampling", *options]) + f", {rate} Hz"
    result = Result(name, version_of(python), good, captured - good)
    for line in stacks.read_text().splitlines():
        frames, weight = line.rsplit(" ", 1)
        parts = [frame.rsplit(":", 2) for frame in frames.split(";") if PROGRAM.name in frame]
        result.add([(name, int(number)) for _, name, number in parts], int(weight))
    return result


def has_sampling(python: str) -> bool:
    code = "import importlib.util as u, sys; sys.exit(not u.find_spec('profiling'))"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def print_table(rows: list[list[str]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for index, row in enumerate(rows):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
        if index == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|", flush=True)


def main() -> int:
    site, seconds, *pythons = sys.argv[1:]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for python in pythons:
            results.append(pyrometer(python, site, seconds, folder))
            if not has_sampling(python):
                continue
            results += [
                sampling(python, seconds, folder, RATE),
                sampling(python, seconds, folder, RATE, "--blocking"),
                sampling(python, seconds, folder, 1000),
                sampling(python, seconds, folder, 1000, "--blocking"),
            ]
    print_table([HEAD, *(result.row() for result in results)])
    for result in results:
        for example in sorted(set(result.examples))[:5]:
            print(f"{result.profiler}, never existed: {example}")
    ours = [result for result in results if result.profiler.startswith("Pyrometer")]
    wrong = (chains_judge.IMPOSSIBLE, chains_judge.CUT_SHORT)
    return int(any(result.judged[verdict] for result in ours for verdict in wrong))


if __name__ == "__main__":
    sys.exit(main())
