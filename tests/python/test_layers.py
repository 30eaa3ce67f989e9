# SPDX-License-Identifier: Apache-2.0
"""The law between the folders of src (ARCHITECTURE.md), read from the #include lines."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import ROOT

SOURCES = ROOT / "src"
MAY_INCLUDE = {
    "base": set(),
    "signal": {"base"},
    "sampler": {"base", "signal"},
    "unwind": {"base", "signal"},
    "python": {"base", "signal"},
    "symbol": {"base"},
    "profile": {"base", "signal", "unwind", "python", "symbol"},
    "export": {"base", "profile"},
    "report": {"base", "profile"},
    "session": {
        *("base", "signal", "sampler", "unwind", "python", "symbol", "profile", "export", "report"),
    },
}


def files() -> list[Path]:
    return sorted(file for file in SOURCES.rglob("*.[ch]"))


def includes(file: Path) -> set[str]:
    return set(re.findall(r'^#include "(\w+)/', file.read_text(), re.MULTILINE))


def test_every_folder_has_its_place() -> None:
    assert {file.parent.name for file in files()} == set(MAY_INCLUDE)


def test_nobody_includes_a_sibling_or_a_higher_layer() -> None:
    wrong = [
        f"{file.relative_to(SOURCES)} includes {folder}"
        for file in files()
        for folder in includes(file) - MAY_INCLUDE[file.parent.name] - {file.parent.name}
    ]
    assert wrong == []


def test_every_source_is_built() -> None:
    listed = set(re.findall(r"'(\w+/\w+\.c)'", (SOURCES / "meson.build").read_text()))
    assert listed == {str(file.relative_to(SOURCES)) for file in files() if file.suffix == ".c"}


def test_every_c_test_is_run() -> None:
    folder = ROOT / "tests/c"
    listed = re.findall(r"'(test_\w+)'", (folder / "meson.build").read_text())
    assert set(listed) == {file.stem for file in folder.glob("test_*.c")}


def test_no_python_header_anywhere() -> None:
    assert [file.name for file in files() if re.search(r"Python\.h[>\"]", file.read_text())] == []
