# SPDX-License-Identifier: Apache-2.0
"""Runs subjects in turn on one load, in one process of worker.py, and keeps the minima.

A subject that has to start the process itself has one of its own, in turn with the other.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from typing import Any

from interpreters import HERE, Interpreter

UNARMED = "unarmed"
SCALENE = ("-m", "scalene", "run", "--cpu-only", "--profile-all")
CLOSE = ("unarmed", "pyrometer", "floor")  # measured in each round, as small differences count
FAR = 1.25  # another one beyond this ratio, or from outside, is measured in two rounds


class WorkerError(Exception):
    """A worker that did not start or ended."""


class Worker:
    """A running worker.py."""

    def __init__(self, python: Interpreter, load: str, *under: str) -> None:
        self._process = subprocess.Popen(
            python.command(*under, HERE / "worker.py", load),
            env=python.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        first = self._answer()
        self.skipped: str = first.get("skipped", "")
        self.times: int = first.get("times", 0)

    def measure(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@bench "):
                answer: dict[str, Any] = json.loads(line.partition(" ")[2])
                return answer
        assert self._process.stderr is not None
        said = self._process.stderr.read().strip().splitlines()
        raise WorkerError(said[-1] if said else "the process ended without a word")

    def end(self) -> None:
        self._process.terminate()
        self._process.communicate()


@dataclass
class Best:
    """The minima of one subject on one load; seconds per run of the load."""

    cpu: float = 0.0
    wall: float = 0.0
    own: float = 0.0  # cores that a process beside it used
    skipped: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, answer: dict[str, Any]) -> None:
        if self.skipped or "skipped" in answer:
            self.skipped = self.skipped or answer["skipped"]
            return
        first = self.cpu == 0.0
        self.cpu = answer["cpu"] if first else min(self.cpu, answer["cpu"])
        self.wall = answer["wall"] if first else min(self.wall, answer["wall"])
        self.own = answer["own"] if first else min(self.own, answer["own"])
        self.facts = answer["facts"]


def settle_seconds(subject: str) -> float:
    """A budget is held by looking at what it costs for a while."""
    return 2.0 if "budget" in subject else 0.0


class Comparison:
    """One load, all subjects in turn."""

    def __init__(self, python: Interpreter, load: str, subjects: list[str]) -> None:
        self.best = {subject: Best() for subject in subjects}
        self._main = Worker(python, load)
        self._workers: dict[str, Worker] = {}
        for subject in subjects if not self._main.skipped else []:
            self._workers[subject] = self._main
            if subject == "scalene":
                self._start_scalene(python, load)
        for best in self.best.values():
            best.skipped = best.skipped or self._main.skipped

    def _start_scalene(self, python: Interpreter, load: str) -> None:
        try:
            self._workers["scalene"] = Worker(python, load, *SCALENE, "-o", "/dev/null")
        except WorkerError as error:
            self.best["scalene"].skipped = str(error)

    def round(self, number: int, repeats: int, windows: int = 1) -> None:
        for subject, best in self.best.items():
            if best.skipped or (number >= 2 and self._is_far(subject)):
                continue
            order = {
                "subject": subject,
                "times": self._main.times,
                "repeats": repeats,
                "windows": windows,
                "settle": settle_seconds(subject),
            }
            try:
                best.add(self._workers[subject].measure(order))
            except (WorkerError, BrokenPipeError) as error:
                best.skipped = str(error)

    def _is_far(self, subject: str) -> bool:
        best = self.best[subject]
        return subject.split()[0] not in CLOSE and (
            best.own > 0 or best.cpu > FAR * self.best[UNARMED].cpu
        )

    def end(self) -> None:
        for worker in {self._main, *self._workers.values()}:
            worker.end()

    def ratio(self, subject: str, of: str = "cpu") -> float | None:
        value = getattr(self.best[subject], of)
        return value / getattr(self.best[UNARMED], of) if value else None


def compare(
    python: Interpreter,
    load: str,
    subjects: list[str],
    rounds: int,
    repeats: int = 2,
    windows: int = 1,
) -> Comparison:
    comparison = Comparison(python, load, [UNARMED, *subjects])
    try:
        for number in range(rounds):
            comparison.round(number, repeats, windows)
    finally:
        comparison.end()
    return comparison
