# SPDX-License-Identifier: Apache-2.0
"""Reads .collapsed files: stacks with the thread's name first, and their weight in us of CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PYTHON_FRAME = re.compile(r"^(?P<name>.*) \((?P<file>.*):(?P<line>\d+)\)$")


@dataclass(frozen=True)
class Stack:
    thread: str
    frames: tuple[str, ...]  # root first
    weight: int  # us

    @property
    def names(self) -> tuple[str, ...]:
        """Frames without files: "module.qualname", "object!symbol" or a pseudo frame."""
        return tuple(name_of(frame) for frame in self.frames)

    @property
    def python(self) -> tuple[str, ...]:
        return tuple(name_of(frame) for frame in self.frames if PYTHON_FRAME.match(frame))

    @property
    def native(self) -> bool:
        return "!" in self.frames[-1]


def name_of(frame: str) -> str:
    match = PYTHON_FRAME.match(frame)
    return match["name"] if match else frame


def read(path: Path) -> list[Stack]:
    return list(parse(path.read_text(encoding="utf-8")))


def parse(text: str) -> Iterator[Stack]:
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        thread, *frames = stack.split(";")
        yield Stack(thread, tuple(frames), int(weight))


def share(stacks: list[Stack], name: str) -> float:
    """The part of all CPU during which a frame of that name was on the stack."""
    total = sum(stack.weight for stack in stacks)
    return sum(stack.weight for stack in stacks if name in stack.names) / total
