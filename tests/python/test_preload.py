# SPDX-License-Identifier: Apache-2.0
"""Armed by LD_PRELOAD: the library alone, in whatever program is started with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import rows
from conftest import Python
from service import write

NATIVE = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) double burn_native(double seconds) {
  volatile double value = 1;
  while (clock() / (double)CLOCKS_PER_SEC < seconds)
    for (int i = 0; i < 1000; i++) value = value * 1.0000001 + 1e-9;
  return value;
}
int main(int count, char **arguments) {
  burn_native(atof(arguments[count - 1]));
  puts(getenv("PYROMETER") ? "set" : "unset");
  return 0;
}
"""

# Python as a plugin of a program that has run for a while.
LATE = """
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int count, char **arguments) {
  (void)count;
  usleep(400000);
  void *python = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!python) { puts(dlerror()); return 1; }
  void (*begin)(int) = (void (*)(int))dlsym(python, "Py_InitializeEx");
  int (*run)(const char *) = (int (*)(const char *))dlsym(python, "PyRun_SimpleString");
  int (*end)(void) = (int (*)(void))dlsym(python, "Py_FinalizeEx");
  begin(0);
  int error = run(arguments[2]);
  return end() || error;
}
"""


def library_of(python: Python) -> Path:
    """The wheel's: it has all that it needs beside it."""
    code = "import pyrometer; print(pyrometer.__path__[0])"
    return Path(python.run("-c", code).stdout.strip()) / "libpyrometer.so"


def preloaded(library: Path, **settings: Any) -> dict[str, str]:
    settings = {"every": 1, "top": 10, **settings}
    return {**os.environ, "LD_PRELOAD": str(library), "PYROMETER": json.dumps(settings)}


def compile_program(folder: Path, source: str) -> Path:
    program = folder / "program"
    program.with_suffix(".c").write_text(source)
    subprocess.run(["cc", "-O1", program.with_suffix(".c"), "-o", program, "-ldl"], check=True)
    return program


def run(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def test_python_without_the_package(python: Python, tmp_path: Path) -> None:
    program = write(
        tmp_path,
        "try:\n import pyrometer\n print('there is the package')\nexcept ImportError: pass\n"
        "import subprocess\n"
        "print(subprocess.check_output(['/bin/sh', '-c', 'ls -d /; echo out']), flush=True)\n"
        "thread = threading.Thread(target=serve, args=(2.6,), name='worker')\n"
        "thread.start()\nserve(2.6)\n",
    )
    done = python.run("-I", "-S", program, env=preloaded(library_of(python)))
    assert (done.returncode, done.stdout) == (0, "b'/\\nout\\n'\n"), done.stderr
    reports = rows.read(done.stderr)
    assert len({report.pid for report in reports}) == 1
    assert [report.window for report in reports] == [1, 2]
    for report in reports:
        assert report.functions[0][0].startswith("__main__.hot (")
        assert set(report.threads) == {"worker", "MainThread"}
        assert int(report.functions[0][3].lstrip("~")) > 100


def test_with_the_package_it_is_armed_once(python: Python, tmp_path: Path) -> None:
    """Two copies of the library are at hand; the package takes the one that runs."""
    copy = tmp_path / "copy"
    shutil.copytree(library_of(python).parent, copy)
    program = write(
        tmp_path,
        "import os, signal, pyrometer\n"
        "serve(1.4)\n"
        "print(pyrometer.snapshot()['state'], os.environ.get('PYROMETER'))\n"
        "print(sum('libpyrometer.so' in line and 'r-xp' in line\n"
        "          for line in open('/proc/self/maps')))\n"
        "os.kill(os.getpid(), signal.SIGUSR2)\n"
        "serve(1.5)\n",
    )
    environment = preloaded(copy / "libpyrometer.so", signal="USR2")
    done = python.run(program, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"attributed {environment['PYROMETER']}\n1\n"
    assert [report.window for report in rows.read(done.stderr)] == [1]


def test_switched_by_a_signal_without_the_package(python: Python, tmp_path: Path) -> None:
    program = write(
        tmp_path,
        "import os, signal\n"
        "serve(1.4)\n"
        "os.kill(os.getpid(), signal.SIGUSR2)\n"
        "serve(2.2)\n"
        "os.kill(os.getpid(), signal.SIGUSR2)\n"
        "serve(2.6)\n",
    )
    done = python.run("-I", "-S", program, env=preloaded(library_of(python), signal="USR2"))
    assert done.returncode == 0, done.stderr
    reports = rows.read(done.stderr)
    assert [report.window for report in reports] in ([1, 1], [1, 1, 2])
    assert reports[-1].functions[0][0].startswith("__main__.hot (")


@pytest.mark.usual_pythons
def test_children_of_the_preloaded(python: Python, tmp_path: Path) -> None:
    child = compile_program(tmp_path, NATIVE)
    program = write(
        tmp_path,
        f"import subprocess\nprint(subprocess.check_output([{str(child)!r}, '1.6'], text=True))\n",
    )
    both = python.run("-I", "-S", program, env=preloaded(library_of(python)))
    alone = python.run("-I", "-S", program, env=preloaded(library_of(python), children=False))
    assert (both.stdout, alone.stdout) == ("set\n\n", "unset\n\n")
    assert len({report.pid for report in rows.read(both.stderr)}) == 2
    assert len({report.pid for report in rows.read(alone.stderr)}) == 1


def test_a_program_without_python(library: Path, tmp_path: Path) -> None:
    program = compile_program(tmp_path, NATIVE)
    done = run(program, 2.4, env=preloaded(library))
    assert (done.returncode, done.stdout) == (0, "set\n")
    reports = rows.read(done.stderr)
    assert [report.window for report in reports] == [1, 2]
    for report in reports:
        assert report.functions[0][0] == "program!burn_native"
        assert list(report.threads) == ["program"]
    assert done.stderr.count("no Python frames: there is no CPython in this process") == 2


def test_short_programs_are_left_in_peace(library: Path) -> None:
    script = 'for i in 1 2 3 4 5; do ls -d / | cat; done; (exec echo inner); kill -TERM "$$"'
    armed = run("/bin/sh", "-c", script, env=preloaded(library))
    plain = run("/bin/sh", "-c", script)
    assert (armed.returncode, armed.stdout, armed.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )


def test_bad_settings_are_said_once(library: Path) -> None:
    environment = {**preloaded(library), "PYROMETER": '{"evry": 1}'}
    done = run("/bin/sh", "-c", "ls -d /; ls -d /", env=environment)
    assert (done.returncode, done.stdout) == (0, "/\n/\n")
    assert done.stderr.count("\n") == 1
    assert 'the key "evry" is not known' in done.stderr


@pytest.mark.parametrize("settings", [None, ""])
def test_preloaded_and_not_asked_for(library: Path, settings: str | None) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    if settings is not None:
        environment["PYROMETER"] = settings
    done = run("/bin/sh", "-c", "grep Threads /proc/self/status; ls -d /", env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Threads:\t1\n/\n", "")


def test_loaded_only_is_not_armed(python: Python) -> None:
    """The constructor runs there too, and leaves it to whoever loaded the library."""
    environment = {**os.environ, "PYROMETER": '{"every": 0.1}'}
    library = str(library_of(python))
    code = f"import ctypes, os, time; ctypes.CDLL({library!r}); time.sleep(0.5); "
    done = python.run(
        "-I",
        "-S",
        "-c",
        code + "print(os.listdir('/proc/self/task') == [str(os.getpid())])",
        env=environment,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.usual_pythons
def test_an_interpreter_that_comes_late(python: Python, tmp_path: Path, library: Path) -> None:
    code = (
        "import sysconfig, sys; print(sysconfig.get_config_var('LIBDIR'), "
        "sysconfig.get_config_var('INSTSONAME'), sys.base_prefix)"
    )
    folder, name, home = python.run("-I", "-c", code).stdout.split()
    shared = Path(folder) / name
    if shared.suffix == ".a" or not shared.exists():
        pytest.skip(f"this Python {python.version} has no shared library")
    host = compile_program(tmp_path, LATE)
    program = write(tmp_path, "serve(3.4)\n").read_text()
    environment = {**preloaded(library), "PYTHONHOME": home}
    done = run(host, shared, program, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = rows.read(done.stderr)
    assert reports[-1].functions[0][0].startswith("__main__.hot (")
    assert "no Python frames" in done.stderr
