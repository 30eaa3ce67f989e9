# SPDX-License-Identifier: Apache-2.0
"""Code objects as programs really have them: short-lived, many, badly named, from Cython."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import collapsed
import extras
import pprofcheck
import pytest
import sparkcheck
from conftest import Python

PROGRAMS = Path(__file__).with_name("programs")
CYTHON = "cython==3.3.1"
CODES_MAX = 65_536  # PM_CODES_MAX
MEGABYTES_MAX = 120  # what so many small codes may take, with all we know of them


def run(python: Python, program: str, *arguments: object, **options: Any) -> str:
    done = python.run(PROGRAMS / program, *arguments, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def summary_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "profile.json").read_text(encoding="utf-8")))


def calls_of(summary: dict[str, Any]) -> dict[str, int]:
    """Calls by "module.qualname"; a name must not stand there twice."""
    rows = [row for row in summary["functions"] if row["calls"]]
    calls = {collapsed.name_of(row["name"]): row["calls"] for row in rows}
    assert len(calls) == len(rows)
    assert all(row["calls_exact"] for row in rows)
    return calls


def test_a_thousand_dropped_functions(python: Python, tmp_path: Path) -> None:
    run(python, "odd_dropped.py", tmp_path)
    summary = summary_of(tmp_path)
    assert summary["diagnostics"]["unknown_codes"] == 0
    assert summary["diagnostics"]["unknown_ids"] == 0
    rows = {row["name"]: row["calls"] for row in summary["functions"] if row["calls"]}
    for number in range(1000):
        module, calls = f"module_{number % 7}", number % 5 + 1
        expected = {
            f"{module}.Body_{number} (<string>:2)": 1,
            f"{module}.Body_{number}.<lambda> (<string>:4)": calls,
            f"{module}.made_{number} (<string>:5)": calls,
            f"{module}.made_{number}.<locals>.<lambda> (<string>:6)": calls,
        }
        assert {name: rows.get(name) for name in expected} == expected


def test_more_codes_than_are_kept(python: Python, tmp_path: Path) -> None:
    """What is beyond the limit is counted, and its CPU is there, under a name that says so."""
    count = 70_000
    grown = float(run(python, "odd_many.py", count, tmp_path))
    summary = summary_of(tmp_path)
    diagnostics = summary["diagnostics"]
    assert sum(diagnostics["codes_by_category"].values()) == CODES_MAX
    names = {name for name in calls_of(summary) if name.startswith("many.made_")}
    # Some of the codes are the program's own, and our calibration's.
    assert CODES_MAX - 60 < len(names) < CODES_MAX
    beyond = count - len(names)
    assert beyond <= diagnostics["unknown_calls"] <= beyond + 10
    assert diagnostics["unknown_codes"] > 0
    stacks = collapsed.read(tmp_path / "profile.collapsed")
    unknown = [s for s in stacks if "(unknown Python function)" in s.frames]
    assert sum(stack.weight for stack in unknown) / 1e6 > 0.15
    assert diagnostics["unknown_ids"] > 30
    print(f"{python.version}: {count} codes, {grown:.0f} MB")
    assert grown < MEGABYTES_MAX


def test_code_from_64_threads_at_once(python: Python, tmp_path: Path) -> None:
    run(python, "odd_threads.py", tmp_path)
    summary = summary_of(tmp_path)
    rows = {row["name"]: row["calls"] for row in summary["functions"] if row["calls"]}
    for thread in range(64):
        for number in range(50):
            assert rows[f"thread_{thread}.made_{thread}_{number} (<string>:2)"] == 2
    assert summary["diagnostics"]["unknown_codes"] == 0


@pytest.fixture(scope="module")
def odd_names(python: Python, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    run(python, "odd_names.py", folder)
    return folder


def test_odd_names_in_json(odd_names: Path) -> None:
    summary = summary_of(odd_names)
    assert summary["diagnostics"]["boundary_misses"] == 0
    found = {row["line"]: row for row in summary["functions"] if row["line"] >= 1000}
    names = [found[1000 + number]["name"] for number in range(14)]
    cut = "long" * 255 + "..."
    assert names == [
        "plain.semi;colon (/x/semi;colon.py:1000)",
        "?.line feed (/x/line feed.py:1001)",
        r"?.car riage tab (/x/\udcff\udcfe.py:1002)",
        r"sur\udc81rogate.sur\udc80rogate (/x/nul\x00byte.py:1003)",
        rf"?.nul\x00byte (/{cut[:1019]}...:1004)",
        rf"semi;colon line.{cut} (:1005)",
        r"nul\x00byte.größe (<string>:1006)",
        "plain.\u202etfel (/x/größe.py:1007)",
        "?.line separator (/x/semi;colon.py:1008)",
        "?.looks like (a.py:1) (/x/line feed.py:1009)",
        r"sur\udc81rogate.? (/x/\udcff\udcfe.py:1010)",
        r"?.  (/x/nul\x00byte.py:1011)",
        rf'semi;colon line."quoted"\ (/{cut[:1019]}...:1012)',
        r"nul\x00byte.<b>&amp;</b> (:1013)",
    ]
    assert all(row["total_s"] > 0.01 for row in found.values())


def test_odd_names_in_collapsed(odd_names: Path) -> None:
    text = (odd_names / "profile.collapsed").read_bytes().decode("utf-8")
    lines = text.split("\n")
    assert lines.pop() == ""
    assert text.splitlines() == lines  # no other break of lines in a name either
    for line in lines:
        stack, weight = line.rsplit(" ", 1)
        assert int(weight) > 0
        assert stack.split(";")[0] == "MainThread"
        assert all(stack.split(";"))
    assert ";plain.semi:colon (/x/semi:colon.py:1000);" in text


def test_odd_names_in_spark_and_pprof(odd_names: Path) -> None:
    assert sparkcheck.check((odd_names / "profile.sparkprofile").read_bytes()) == []
    assert pprofcheck.check((odd_names / "profile.pb.gz").read_bytes()) == []
    profile = pprofcheck.load((odd_names / "profile.pb.gz").read_bytes())
    names = {function.name for function in profile.functions}
    json_names = {row["name"] for row in summary_of(odd_names)["functions"] if row["line"] >= 1000}
    assert len(json_names) == 14
    # Without the file, which has a place of its own.
    assert all(any(name.startswith(short) for short in names) for name in json_names)


def build_cython(python: Python, folder: Path) -> None:
    header = "import sysconfig; print(sysconfig.get_path('include'))"
    include = Path(python.run("-c", header).stdout.strip())
    if not (include / "Python.h").is_file():
        pytest.skip(f"{python.version} has no Python.h here")
    cython: list[str | Path] = [sys.executable, "-m", "cython", PROGRAMS / "odd_cython.pyx"]
    environment = {**os.environ, "PYTHONPATH": str(extras.of_tests(CYTHON))}
    subprocess.run([*cython, "-o", folder / "odd_cython.c"], check=True, env=environment)
    output = ["-o", str(folder / "odd_cython.so"), str(folder / "odd_cython.c")]
    flags = ["-DCYTHON_TRACE=1", "-DCYTHON_TRACE_NOGIL=1", f"-I{include}"]
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", *flags, *output], check=True)


# In which Cython's own functions tell of themselves through sys.monitoring; before, they do
# through sys.setprofile only, and stand in the profile as native functions.
CYTHON_EVENTS = {
    "odd_cython.c_calls": 60,
    "odd_cython.c_raises": 60,
    "odd_cython.c_inner": 60,
    "odd_cython.c_method": 30,
}


def test_cython_and_python_call_each_other(python: Python, tmp_path: Path) -> None:
    build_cython(python, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    run(python, "odd_cython_load.py", tmp_path, env=environment)
    summary = summary_of(tmp_path)
    calls = calls_of(summary)
    expected = {
        "__main__.leaf": 330,
        "__main__.fail": 30,
        "__main__.middle": 30,
        "__main__.burn": 361,
        "__main__.after": 1,
    }
    told = python.version != "3.12"
    if told:
        expected |= CYTHON_EVENTS
    assert {name: calls[name] for name in expected} == expected
    check_cython_stacks(collapsed.read(tmp_path / "profile.collapsed"), told=told)


def check_cython_stacks(stacks: list[collapsed.Stack], *, told: bool) -> None:
    """Balanced: nobody stays on the stack after it has returned or raised."""
    after = [stack for stack in stacks if "__main__.after" in stack.names]
    assert sum(stack.weight for stack in after) / 1e6 == pytest.approx(0.3, abs=0.1)
    root = ("__main__.<module>", "__main__.after", "__main__.burn")
    assert {stack.python for stack in after if "__main__.burn" in stack.names} == {root}
    failing = {stack.python for stack in stacks if "__main__.fail" in stack.names}
    c_frames = ("odd_cython.c_raises", "odd_cython.c_inner") if told else ()
    begin = ("__main__.<module>", "__main__.work", *c_frames, "__main__.fail")
    assert failing
    assert all(python[: len(begin)] == begin for python in failing)
