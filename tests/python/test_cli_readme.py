# SPDX-License-Identifier: Apache-2.0
"""Every command and every example of the README works as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, Python

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
LINES = [
    line.partition("  #")[0] for kind, block in BLOCKS if not kind for line in block.splitlines()
]
MAKE = [line.split()[1] for line in LINES if line.startswith("make ")]
PYROMETER = [line.removeprefix("$ ") for line in LINES if re.match(r"(\$ )?pyrometer ", line)]
EXAMPLES = [block for kind, block in BLOCKS if kind == "python"]

pytestmark = pytest.mark.usual_pythons


def test_the_readme_was_read() -> None:
    assert MAKE == ["demo", "test"]
    assert len(PYROMETER) >= 4
    assert len(EXAMPLES) == 1


def test_make_test_is_there() -> None:
    subprocess.run(["make", "-n", "test"], cwd=ROOT, check=True, capture_output=True)


def test_make_demo() -> None:
    done = subprocess.run(
        ["make", "demo"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "120"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    named = re.findall(r"build/demo/\S+\.(?:sparkprofile|pb\.gz)\b", done.stdout)
    assert len(named) >= 2
    assert all((ROOT / name).stat().st_size > 1000 for name in named)
    assert "get_tokens_unprocessed (pygments/lexer.py:" in done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    for name in ("app.py", "package/__init__.py", "package/module.py"):
        (tmp_path / name).write_text("import sys; print(sys.argv[1:])")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.every_python
@pytest.mark.parametrize("command", PYROMETER)
def test_command(python: Python, folder: Path, command: str) -> None:
    name, *arguments = shlex.split(command)
    assert name == "pyrometer"
    done = python.pyrometer_command(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    written = re.findall(r"^wrote (.*)$", done.stderr, re.MULTILINE)
    assert written
    assert all(Path(path).parent == folder and Path(path).exists() for path in written)


@pytest.mark.every_python
@pytest.mark.parametrize("example", EXAMPLES)
def test_example(python: Python, folder: Path, example: str) -> None:
    done = python.run("-c", example, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "report.sparkprofile").exists()


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_links_and_files(page: str) -> None:
    text = (ROOT / page).read_text()
    named = re.findall(r"\]\(([^)#]+)\)", text) + re.findall(r"`(\w+/[\w/.]+\.\w+)`", text)
    assert named
    places = (ROOT, ROOT / "src", ROOT / "python/pyrometer")
    missing = [name for name in named if not any((place / name).exists() for place in places)]
    assert missing == []
