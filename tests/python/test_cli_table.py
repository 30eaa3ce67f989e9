# SPDX-License-Identifier: Apache-2.0
"""The table at the end of `pyrometer run`: what it says, and that it fits and cannot be abused."""

from __future__ import annotations

from typing import Any

import pytest
from pyrometer.report import terminal
from pyrometer.report.table import render

PYTHON = {"version": "3.13.0", "free_threaded": False, "state": "attributed", "reason": ""}


def function(name: str, self_s: float, total_s: float, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "file": "",
        "line": 0,
        "category": "native",
        "source": "",
        "self_s": self_s,
        "total_s": total_s,
        "calls": None,
        "calls_exact": False,
        **more,
    }


def thread(name: str, tid: int, cpu_s: float, sampled_s: float, reason: str = "") -> dict[str, Any]:
    return {"name": name, "tid": tid, "cpu_s": cpu_s, "sampled_s": sampled_s, "reason": reason}


def summary(**more: Any) -> dict[str, Any]:
    return {
        "pyrometer": "0.1.0",
        "pid": 7,
        "start": 1.0,
        "seconds": 4.5,
        "python": PYTHON,
        "cpu_s": 4.0,
        "sampled_s": 3.9,
        "overhead_pct": 1.26,
        "threads": [thread("MainThread", 7, 4.0, 3.9)],
        "functions": [
            function("libc.so.6!memcpy", 0.9, 0.9, file="/usr/lib/libc.so.6"),
            function(
                "app.engine.run (/srv/app/engine.py:88)",
                3.0,
                3.9,
                file="/srv/app/engine.py",
                line=88,
                calls=1234567,
                calls_exact=True,
            ),
        ],
        "diagnostics": {
            "stored": 390,
            "samples_attributed": 389,
            "signals": 393,
            "lost": {"ring_full": 2, "nested": 1, "inactive": 0},
        },
        **more,
    }


def test_whole() -> None:
    assert render(summary(), ["/tmp/a\x1b.json", "b.pb.gz"], top=10, width=100) == (
        "pyrometer: 4.000 s of CPU in 4.500 s, Python 3.13.0\n"
        "\n"
        "self s  self %  total s  total %      calls  function\n"
        " 3.000    76.9    3.900    100.0  1,234,567  app.engine.run (app/engine.py:88)\n"
        " 0.900    23.1    0.900     23.1             libc.so.6!memcpy\n"
        "\n"
        "CPU s  sampled  tid  thread\n"
        "4.000    3.900    7  MainThread\n"
        "\n"
        "390 samples, 99.7 % with Python frames, 3 lost (nested 1, ring_full 2), "
        "overhead 1.3 % of the CPU\n"
        "wrote /tmp/a\\x1b.json\n"
        "wrote b.pb.gz\n"
    )


def test_top_and_calls_that_are_estimated() -> None:
    functions = [
        function(f"m.f{i} (m.py:{i})", i, i, file="m.py", line=i, calls=i * 1000, calls_exact=i % 2)
        for i in range(1, 6)
    ]
    lines = render(summary(functions=functions), [], top=2, width=100).splitlines()
    assert lines[3].endswith("5,000  m.f5 (m.py:5)")
    assert lines[4].endswith("~4,000  m.f4 (m.py:4)")
    assert lines[5] == ""


def test_native_only_says_why() -> None:
    python = {**PYTHON, "version": "3.11.7", "state": "native-only", "reason": "3.12 is required"}
    none = {"stored": 389, "samples_attributed": 0}
    lines = render(summary(python=python, diagnostics=none), [], top=1, width=100).splitlines()
    assert lines[:2] == [
        "pyrometer: 4.000 s of CPU in 4.500 s, Python 3.11.7",
        "no Python frames, native ones only: 3.12 is required",
    ]
    lines = render(summary(python=python), [], top=1, width=100).splitlines()
    assert lines[1] == "Python frames at first, then native ones only: 3.12 is required"


def test_free_threaded_is_named() -> None:
    text = render(summary(python={**PYTHON, "free_threaded": True}), [], top=1, width=100)
    assert "Python 3.13.0t\n" in text


def test_nothing_sampled_says_so_in_words() -> None:
    text = render(
        summary(
            cpu_s=0.004,
            sampled_s=0.0,
            functions=[],
            diagnostics={"stored": 0, "lost": {"inactive": 1}},
        ),
        [],
        top=10,
        width=100,
    )
    assert "self s" not in text
    assert "no samples: the program used 0.004 s of CPU, 1 lost (inactive 1)" in text


def test_threads_that_were_not_sampled_and_many_threads() -> None:
    threads = [thread(f"worker-{i}", 100 + i, i, i) for i in range(14)]
    threads[13].update(reason="no timer was left", sampled_s=0.0)
    lines = render(summary(threads=threads), [], top=1, width=100).splitlines()
    start = lines.index(" CPU s  sampled  tid  thread")
    assert lines[start + 1] == "13.000        -  113  worker-13: no timer was left"
    assert lines[start + 11] == " 6.000    6.000       (4 more)"


@pytest.mark.parametrize("width", [1, 40, 60, 80, 200])
def test_fits(width: int) -> None:
    functions = [
        function("a" * 300 + ".py", 1, 1),
        function("模块." * 60, 1, 1),
        function("e\u0301" * 200, 1, 1),
    ]
    text = render(summary(functions=functions), [], top=10, width=width)
    table = text.split("\n\n")[1].splitlines()
    narrowest = max(width, 39 + 2 + 24)
    assert all(terminal.columns(line) <= narrowest for line in table)
    assert table[1].endswith("a.py") or width < 70


HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\n\t\x9b31m\u202eabc\u2066\u200b\ud800"


def test_names_cannot_move_the_cursor() -> None:
    lines = render(
        summary(
            functions=[function(HOSTILE, 1, 1)],
            threads=[thread(HOSTILE, 1, 1, 1, HOSTILE)],
            python={**PYTHON, "version": HOSTILE, "state": "native-only", "reason": HOSTILE},
            diagnostics={"stored": 1, "samples_attributed": 1, "lost": {HOSTILE: 1}},
        ),
        [],
        top=10,
        width=300,
    )
    assert all(line.isprintable() for line in lines.split("\n"))
    assert "\\x1b[2J" in lines


def test_summary_of_another_version() -> None:
    """Missing keys are left out, not stumbled over."""
    assert render({}, [], top=5, width=80).startswith("pyrometer: 0.000 s of CPU")


def test_width(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = terminal.Stderr()
    monkeypatch.setenv("COLUMNS", "77")
    assert stderr.width() == 77
    for unusable in ("0", "-5", "wide", ""):
        monkeypatch.setenv("COLUMNS", unusable)
        assert stderr.width() > 0


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        ("short", 5, "short"),
        ("abcdefghij", 8, "..efghij"),
        ("日本語テキスト", 8, "..キスト"),
        ("日本語テキスト", 9, "..キスト"),
        ("x" * 10, 1, ".."),
    ],
)
def test_fit(text: str, width: int, fitted: str) -> None:
    assert terminal.fit(text, width) == fitted
