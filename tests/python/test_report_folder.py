# SPDX-License-Identifier: Apache-2.0
"""`"output": DIR`: one .sparkprofile an interval, bounded, private, and never through a link."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import rows
import sparkcheck
from conftest import Python
from service import armed, write


def run(
    python: Python, folder: Path, program: str, output: Path, **settings: Any
) -> subprocess.CompletedProcess[str]:
    settings = {"every": 1, "top": 5, "output": str(output), **settings}
    done = python.run(write(folder, program), env=armed(**settings), timeout=60)
    assert done.returncode == 0, done.stderr
    return done


def windows(output: Path) -> list[int]:
    names = [
        re.fullmatch(r"pyrometer-\d+-(\d+)\.sparkprofile", path.name) for path in files(output)
    ]
    assert all(names), files(output)
    return sorted(int(name[1]) for name in names if name)


def files(output: Path) -> list[Path]:
    return sorted(output.iterdir(), key=lambda path: path.stat().st_mtime_ns)


def total_ms(data: bytes, method: str) -> float:
    """The time under all frames of a method that is not recursive."""
    nodes = [node for thread in sparkcheck.load(data)["threads"] for node in thread["children"]]
    return sum(sum(node["times"]) for node in nodes if node["method_name"] == method)


def test_a_file_an_interval(python: Python, tmp_path: Path) -> None:
    output = tmp_path / "profiles"
    done = run(python, tmp_path, "def early(): serve(1.2)\nearly()\nserve(2.3)\n", output)
    reports = rows.read(done.stderr)
    assert windows(output) == [report.window for report in reports] == [1, 2, 3]
    assert output.stat().st_mode & 0o777 == 0o700
    for path, report in zip(files(output), reports, strict=True):
        assert path.name.startswith(f"pyrometer-{reports[0].pid}-")
        assert path.stat().st_mode & 0o777 == 0o600
        data = path.read_bytes()
        assert sparkcheck.check(data) == []
        assert 600 < total_ms(data, "hot") / report.cores < 1200
    assert b"early" in files(output)[0].read_bytes()
    assert b"early" not in files(output)[2].read_bytes()


@pytest.mark.usual_pythons
def test_the_folder_does_not_grow(python: Python, tmp_path: Path) -> None:
    output = tmp_path / "profiles"
    output.mkdir(mode=0o700)
    (output / "pyrometer-1-1.sparkprofile").write_bytes(b"of another process")
    run(python, tmp_path, "serve(7)\n", output, every=0.1)
    (output / "pyrometer-1-1.sparkprofile").unlink()
    found = windows(output)
    assert len(found) == 60
    assert found == list(range(found[-1] - 59, found[-1] + 1))


def _everybody(output: Path) -> None:
    output.mkdir()
    output.chmod(0o777)


def _link(output: Path) -> None:
    (output.parent / "target").mkdir(mode=0o700)
    output.symlink_to("target")


def _file(output: Path) -> None:
    output.write_text("kept")


@pytest.mark.usual_pythons
@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (_everybody, "everybody may write there (chmod o-w)"),
        (_link, "it is a symbolic link"),
        (_file, "Not a directory"),
        (lambda output: None, "No such file or directory"),
    ],
)
def test_a_folder_that_is_no_good(python: Python, tmp_path: Path, prepare: Any, says: str) -> None:
    output = tmp_path / "profiles"
    prepare(output)
    wanted = output if output.exists() else output / "not" / "there"
    done = run(python, tmp_path, "serve(2.4)\nprint('served')\n", wanted)
    assert done.stdout == "served\n"
    lines = [line for line in done.stderr.splitlines() if not line.startswith("[profile]")]
    assert lines == [f'pyrometer: no profiles in "output": "{wanted}": {says}']
    assert len(rows.read(done.stderr)) == 2
    assert not output.is_dir() or files(output) == []


@pytest.mark.usual_pythons
def test_no_link_is_followed(python: Python, tmp_path: Path) -> None:
    output, target = tmp_path / "profiles", tmp_path / "target"
    target.write_text("kept")
    done = run(
        python,
        tmp_path,
        "import os\n"
        f"name = f'{output}/pyrometer-{{os.getpid()}}-1.sparkprofile'\n"
        f"os.symlink({str(target)!r}, name)\n"
        "serve(2.4)\n",
        output,
    )
    assert target.read_text() == "kept"
    assert windows(output) == [1, 2]
    assert next(
        path for path in files(output) if path.name.endswith("-1.sparkprofile")
    ).is_symlink()
    assert done.stderr.count("it is a symbolic link") == 1


@pytest.mark.usual_pythons
def test_each_worker_has_its_own(python: Python, tmp_path: Path) -> None:
    output = tmp_path / "profiles"
    program = (
        "import os\nif os.fork() == 0:\n    serve(2.4)\n    os._exit(0)\nserve(2.4)\nos.wait()\n"
    )
    run(python, tmp_path, program, output)
    assert len({path.name.split("-")[1] for path in files(output)}) == 2
    assert all(sparkcheck.check(path.read_bytes()) == [] for path in files(output))
