# SPDX-License-Identifier: Apache-2.0
"""How far each profiler is from the truth: programs whose parts are known, in points of share.

Of the split the truth is the CPU of each part in a run without a profiler; of the threads,
what each was told to burn. The error of a run is that of its worst part.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import table
from interpreters import HERE, Interpreter
from measure import UNARMED

SUBJECTS = [
    *("pyrometer", "pyrometer budget=3", "cProfile", "yappi", "pyinstrument", "scalene"),
    *("py-spy", "py-spy --native", "py-spy --gil", "profiling.sampling --mode=cpu"),
]
PROGRAMS = {"split": "loop : sort : calls", "shares": "threads that burn 1:2:4:8"}
ALL_THE_SAME = ("cProfile", "yappi")  # they count, one run tells all
RUNS = 3

Shares = dict[str, float]


class NotMeasuredError(Exception):
    """Why there is no result."""


def shares(weights: dict[str, float]) -> Shares:
    whole = sum(weights.values())
    if not whole:
        raise NotMeasuredError("shows none of the parts")
    return {part: 100 * value / whole for part, value in weights.items()}


def run(command: list[str], python: Interpreter) -> str:
    done = subprocess.run(
        command, env=python.environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotMeasuredError(
            (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
        )
    return done.stdout


def record(python: Interpreter, subject: str, program: str) -> dict[str, Any]:
    said = run(python.command(HERE / "record.py", subject, program), python)
    answer: dict[str, Any] = json.loads(said.splitlines()[-1])
    if "skipped" in answer:
        raise NotMeasuredError(answer["skipped"])
    return answer


def record_scalene(python: Interpreter, program: str, parts: list[str]) -> dict[str, float]:
    """It starts the program itself, and tells lines: what they have together is a function's."""
    path = HERE / "programs" / f"{program}.py"
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "scalene.json")
        run(python.command("-m", "scalene", "run", "--cpu-only", "-o", output, path), python)
        files = json.loads(output.read_text())["files"]
    if str(path) not in files:
        raise NotMeasuredError("shows nothing of the program")
    functions = {one["line"]: cpu(one) for one in files[str(path)]["functions"]}
    known = {part: functions.get(part, 0.0) for part in parts}
    if program == "split":
        known["call_part"] += functions.get("tiny", 0.0)
    return known


def cpu(function: dict[str, float]) -> float:
    return sum(
        function[f"n_{kind}"] for kind in ("cpu_percent_python", "cpu_percent_c", "sys_percent")
    )


def said(python: Interpreter, subject: str, program: str, parts: list[str]) -> Shares:
    if subject == "scalene":
        return shares(record_scalene(python, program, parts))
    return shares(record(python, subject, program)["said"])


def truth(python: Interpreter, program: str, runs: int = RUNS) -> Shares:
    """Of the median run of each part."""
    runs_of = [record(python, UNARMED, program)["truth"] for _ in range(runs)]
    parts = list(runs_of[0])
    return shares({part: statistics.median(run[part] for run in runs_of) for part in parts})


def error(one: Shares, true: Shares) -> float:
    return max(abs(one[part] - true[part]) for part in true)


def measure(
    python: Interpreter, program: str, subjects: list[str], runs: int = RUNS
) -> dict[str, list[Shares] | str]:
    """The runs of each subject, in turn; or why there are none."""
    results: dict[str, list[Shares]] = {subject: [] for subject in subjects}
    true = truth(python, program, runs)
    reasons: dict[str, str] = {}
    for number in range(runs):
        for subject in subjects:
            if number and (subject in reasons or subject in ALL_THE_SAME):
                continue
            try:
                results[subject].append(said(python, subject, program, list(true)))
            except NotMeasuredError as why:
                reasons[subject] = str(why)
    without = {subject: why for subject, why in reasons.items() if not results[subject]}
    return {**results, **without, "truth": [true]}


def errors(results: dict[str, list[Shares] | str], subject: str) -> list[float]:
    known, true = results[subject], results["truth"]
    assert not isinstance(true, str)
    return [] if isinstance(known, str) else [error(one, true[0]) for one in known]


def mean_shares(known: list[Shares], parts: list[str]) -> str:
    return " : ".join(f"{statistics.mean(one[part] for one in known):.1f}" for part in parts)


def show(title: str, results: dict[str, list[Shares] | str]) -> None:
    rows, parts = [], list(results["truth"][0])
    for subject, known in results.items():
        if isinstance(known, str):
            print(f"{subject}: skipped, {known}")
            continue
        found = errors(results, subject)
        cells = [mean_shares(known, parts), f"{statistics.median(found):.1f}", f"{max(found):.1f}"]
        rows.append([subject, *cells, str(len(found))])
    true = rows.pop()
    rows.insert(0, ["truth", true[1], "", "", ""])
    table.show(title, ["", "% of " + " : ".join(parts), "error, points", "worst run", "runs"], rows)


def main(pythons: list[Interpreter]) -> int:
    for python in pythons:
        for program, title in PROGRAMS.items():
            show(f"{title}, Python {python.name}", measure(python, program, SUBJECTS))
    return 0
