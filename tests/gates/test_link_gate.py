# SPDX-License-Identifier: Apache-2.0
"""The link gate finds what is planted, and the real handler passes it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("PYROMETER_BUILD", ROOT / "build"))
CC = os.environ.get("CC", "gcc").split()

CLEAN = "int f(int a); int f(int a) { return a + 1; }"
MALLOC = "#include <stdlib.h>\nvoid *f(void); void *f(void) { return malloc(8); }"
MEMCPY = """#include <string.h>
void f(void *to, const void *from, size_t size);
void f(void *to, const void *from, size_t size) { memcpy(to, from, size); }"""
TLS = "extern _Thread_local int counter; int f(void); int f(void) { return ++counter; }"
OWN_TLS = "_Thread_local int counter; int f(void); int f(void) { return ++counter; }"

pytestmark = pytest.mark.skipif(shutil.which(CC[0]) is None, reason="no C compiler here")


def compile_object(folder: Path, source: str, *flags: str, name: str = "planted") -> Path:
    path, target = folder / f"{name}.c", folder / f"src_signal_{name}.c.o"
    path.write_text(source)
    command = [*CC, "-std=c11", "-O2", "-fPIC", *flags, "-c", str(path), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


def run_gate(*arguments: object) -> tuple[int, list[str]]:
    command = [sys.executable, str(HERE / "link_gate.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_clean_object_passes(tmp_path: Path) -> None:
    status, lines = run_gate(compile_object(tmp_path, CLEAN))
    assert (status, len(lines)) == (0, 1)


@pytest.mark.parametrize(("source", "name"), [(MALLOC, "malloc"), (MEMCPY, "memcpy")])
def test_foreign_function_is_named(tmp_path: Path, source: str, name: str) -> None:
    status, lines = run_gate(
        compile_object(tmp_path, CLEAN.replace("f(", "g("), name="clean"),
        compile_object(tmp_path, source),
    )
    assert status == 1
    assert lines == [
        f"link gate: {name}: needed by src_signal_planted.c.o, not in allowed_symbols.txt"
    ]


def test_symbols_of_each_other_are_fine(tmp_path: Path) -> None:
    caller = "int f(int a); int g(int a); int g(int a) { return f(a) + 2; }"
    status, _ = run_gate(
        compile_object(tmp_path, CLEAN, name="callee"),
        compile_object(tmp_path, caller, name="caller"),
    )
    assert status == 0


def test_dynamic_tls_is_named(tmp_path: Path) -> None:
    planted = compile_object(tmp_path, TLS, "-ftls-model=global-dynamic")
    status, lines = run_gate(planted)
    assert status == 1
    assert any("counter: thread-local access by a call (R_" in line for line in lines)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a dialect of x86-64")
def test_tls_descriptor_is_named(tmp_path: Path) -> None:
    planted = compile_object(tmp_path, OWN_TLS, "-ftls-model=global-dynamic", "-mtls-dialect=gnu2")
    status, lines = run_gate(planted)
    assert status == 1
    assert any("counter" in line and "TLSDESC" in line for line in lines)


def test_initial_exec_tls_passes(tmp_path: Path) -> None:
    status, lines = run_gate(compile_object(tmp_path, OWN_TLS, "-ftls-model=initial-exec"))
    assert status == 0, lines


def test_lto_is_refused(tmp_path: Path) -> None:
    status, lines = run_gate(compile_object(tmp_path, MALLOC, "-flto", "-fno-fat-lto-objects"))
    assert status == 1
    assert lines == [
        "link gate: src_signal_planted.c.o: built with -flto, which hides what it calls"
    ]


def test_build_folder_is_searched(tmp_path: Path) -> None:
    library, program, gate = (
        tmp_path / name for name in ("libsignal.a.p", "test_walk.p", "gate/libsignal.a.p")
    )
    for folder in (library, program, gate):
        folder.mkdir(parents=True)
    compile_object(library, CLEAN)
    compile_object(program, MALLOC)
    compile_object(gate, MALLOC)
    assert run_gate(tmp_path)[0] == 0
    compile_object(library, MALLOC)
    assert run_gate(tmp_path)[0] == 1


def test_nothing_to_look_at_is_a_failure(tmp_path: Path) -> None:
    status, lines = run_gate(tmp_path)
    assert status == 1
    assert lines == [f"link gate: no lib*/src_signal_*.c.o under {tmp_path}"]
    assert run_gate(tmp_path / "missing.o")[0] == 1


def test_real_handler_passes() -> None:
    if not list(BUILD.rglob("src_signal_*.c.o")):
        pytest.skip(f"no build in {BUILD}")
    status, lines = run_gate(BUILD)
    assert status == 0, lines
