# SPDX-License-Identifier: Apache-2.0
"""import pyrometer: starting, stopping, exporting, and errors as exceptions."""

from __future__ import annotations

import builtins
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Python
from pyrometer import _library

pytestmark = pytest.mark.usual_pythons


def run(python: Python, program: str, *arguments: object, **options: Any) -> list[str]:
    done = python.run("-c", textwrap.dedent(program), *arguments, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_exceptions_are_those_of_the_header() -> None:
    header = (ROOT / "include/pyrometer.h").read_text()
    body = header.split("#define PYROMETER_ERROR_MAP(X)")[1].split("enum pyrometer_error")[0]
    entry = r'X\(\s*(\w+),\s*(-?\d+),\s*"[^"]*",\s*"[^"]*",\s*(\w+)\s*\)'
    found = re.findall(entry, body.replace("\\\n", " "))
    assert len(found) == body.count("X(")
    errors = {int(code): getattr(builtins, kind) for _, code, kind in found if kind != "None"}
    assert errors == _library.EXCEPTIONS


def test_every_public_function_of_the_header_is_reached() -> None:
    header = (ROOT / "include/pyrometer.h").read_text()
    functions = set(re.findall(r"^PYROMETER_API .*?(pyrometer_\w+)\(", header, re.MULTILINE))
    # A Python thread is registered by its own first event.
    assert functions - set(_library._SIGNATURES) == {"pyrometer_thread_register"}


@pytest.mark.every_python
def test_version(python: Python) -> None:
    version = (ROOT / "python/pyrometer/VERSION").read_text().strip()
    program = """
        import pyrometer
        from pyrometer._library import library
        print(pyrometer.__version__, library().version())
    """
    assert run(python, program) == [f"{version} {version}"]


@pytest.mark.every_python
def test_start_export_stop(python: Python, tmp_path: Path) -> None:
    program = """
        import json, pathlib, sys, pyrometer
        folder = pathlib.Path(sys.argv[1])
        pyrometer.start(rate=250)
        sum(i * i for i in range(1_000_000))
        pyrometer.export(folder / "running.json")
        pyrometer.stop()
        pyrometer.export(str(folder / "stopped.json"))
        print(sorted(p.name for p in folder.iterdir()))
        print(type(pyrometer.snapshot()).__name__, "lost" in pyrometer.snapshot())
        pyrometer.reset()
        try:
            pyrometer.snapshot()
        except RuntimeError as error:
            print(error)
    """
    assert run(python, program, tmp_path) == [
        "['running.json', 'stopped.json']",
        "dict True",
        "nothing has been profiled yet: start and stop first",
    ]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("stop()", "RuntimeError: the profiler is not running: start it first"),
        ("start(rate=251)", "ValueError: an option is out of range"),
        ("start(rate=-1)", "ValueError: an option is out of range"),
        ("start(rate=0)", "ValueError: rate and max_threads start at 1"),
        ("start(max_threads=1 << 40)", "ValueError: an option is out of range"),
        ("export('x.json')", "RuntimeError: nothing has been profiled yet"),
        ("start(); p.start()", "RuntimeError: the profiler is already running"),
        ("start(); p.export('/no/x.json')", "FileNotFoundError: [Errno 2] the output file could"),
        ("start(); p.export('x.txt')", "ValueError: the output format is not known"),
        ("start(); p.export('a\\0b.json')", "ValueError: embedded null"),
        ("start(wall=True)", "TypeError: start() got an unexpected keyword argument 'wall'"),
    ],
)
def test_errors(python: Python, tmp_path: Path, call: str, error: str) -> None:
    program = f"""
        import pyrometer as p
        try:
            p.{call}
        except Exception as error:
            print(f"{{type(error).__name__}}: {{error}}")
    """
    (line,) = run(python, program, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert line.startswith(error)


@pytest.mark.every_python
def test_profile_as_context_manager_and_decorator(python: Python, tmp_path: Path) -> None:
    program = """
        import asyncio, os, sys, pyrometer
        os.chdir(sys.argv[1])
        with pyrometer.profile("block.json", rate=200) as profile:
            pass
        @pyrometer.profile("function.json")
        def factorial(n):
            "Doc."
            return n * factorial(n - 1) if n else 1
        print(factorial(5), factorial.__doc__, factorial(3))
        @pyrometer.profile("coroutine.json")
        async def coroutine():
            await asyncio.sleep(0)
            return pyrometer.snapshot() is not None
        print(asyncio.run(coroutine()))
        try:
            @pyrometer.profile()
            def generator():
                yield
        except TypeError as error:
            print(error)
        with pyrometer.profile():
            pass
        pyrometer.export("later.json")
        print(sorted(os.listdir()))
    """
    assert run(python, program, tmp_path) == [
        "120 Doc. 6",
        "True",
        "profile cannot wrap a generator; use it in a with statement",
        "['block.json', 'coroutine.json', 'function.json', 'later.json']",
    ]


def test_profile_lets_the_program_s_exception_through(python: Python, tmp_path: Path) -> None:
    program = """
        import os, sys, pyrometer
        os.chdir(sys.argv[1])
        for path in ("good.json", "/no/bad.json"):
            try:
                with pyrometer.profile(path):
                    raise KeyError("mine")
            except KeyError as error:
                print(error, [note[:40] for note in getattr(error, "__notes__", [])])
        try:
            with pyrometer.profile("/no/bad.json"):
                pass
        except OSError as error:
            print(error.filename)
        pyrometer.start()
        pyrometer.stop()
        print(os.listdir())
    """
    assert run(python, program, tmp_path) == [
        "'mine' []",
        "'mine' ['pyrometer: [Errno 2] the output file cou']",
        "/no/bad.json",
        "['good.json']",
    ]


@pytest.mark.every_python
def test_threads_share_a_decorated_function(python: Python) -> None:
    program = """
        import threading, time, pyrometer
        @pyrometer.profile()
        def work():
            time.sleep(0.05)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        try:
            pyrometer.stop()
        except RuntimeError as error:
            print("stopped")
    """
    assert run(python, program) == ["stopped"]


@pytest.mark.every_python
def test_import_alone_loads_next_to_nothing(python: Python) -> None:
    program = """
        import sys
        before = set(sys.modules)
        import pyrometer
        print(sorted(set(sys.modules) - before))
    """
    assert run(python, program) == ["['pyrometer']"]
