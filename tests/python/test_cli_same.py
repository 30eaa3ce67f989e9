# SPDX-License-Identifier: Apache-2.0
"""A program under `pyrometer run` sees, prints and ends as under plain Python."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import textwrap
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import Python

pytestmark = pytest.mark.usual_pythons

# What a program can see of how it was started. Not in the list because they differ, and may:
# sys.monitoring's tool names (ours is there), the number of atexit functions (one more), and
# libffi's own file, which newer ones keep open from `import ctypes` on.
FACTS = """
import gc, json, os, signal, sys
def files():
    for number in os.listdir("/proc/self/fd"):
        try:
            if "/libffi." not in os.readlink("/proc/self/fd/" + number):
                yield number
        except FileNotFoundError:
            pass  # the listing's own
facts = {
    "modules": sorted(sys.modules),
    "argv": sys.argv,
    "orig_argv": sys.orig_argv[1:],
    "executable": sys.executable,
    "flags": repr(sys.flags),
    "path": sys.path,
    "warnoptions": sys.warnoptions,
    "xoptions": sys._xoptions,
    "environ": {k: v for k, v in os.environ.items() if k != "_"},
    "cwd": os.getcwd(),
    "name": __name__,
    "file": globals().get("__file__"),
    "spec": repr(__spec__),
    "package": __package__,
    "loader": type(__loader__).__name__,
    "globals": sorted(globals()),
    "main": sorted(vars(sys.modules["__main__"])),
    "signals": [repr(signal.getsignal(n)) for n in sorted(signal.valid_signals())],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "gc": [gc.get_threshold(), gc.isenabled(), gc.get_debug()],
    "hooks": [sys.excepthook is sys.__excepthook__, sys.gettrace(), sys.getprofile()],
    "limits": [sys.getrecursionlimit(), sys.getswitchinterval()],
    "streams": [(s.encoding, s.errors, s.line_buffering, s.write_through, s.isatty(), s.name)
                for s in (sys.stdin, sys.stdout, sys.stderr)],
    "umask": os.umask(0o22),
    "files": sorted(files()),
    "stdin": sys.stdin.read(),
}
import warnings, threading
facts["filters"] = repr(warnings.filters)
facts["threads"] = [t.name for t in threading.enumerate()]
facts["main thread"] = threading.current_thread() is threading.main_thread()
print(json.dumps(facts))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the programs run; reports go elsewhere."""
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "facts.py").write_text(FACTS)
    (folder / "package").mkdir()
    (folder / "package" / "__main__.py").write_text(FACTS)
    (folder / "package" / "__init__.py").write_text("")
    with zipfile.ZipFile(folder / "app.zip", "w") as archive:
        archive.writestr("__main__.py", FACTS)
    return folder


PROGRAMS = {
    "script": ["facts.py", "a", "-o", "x.json", "--rate", "-m", "--", ""],
    "script by path": ["./facts.py"],
    "module": ["-m", "package", "-c", "--quiet"],
    "module attached": ["-mfacts", "one"],
    "code": ["-c", FACTS, "-h", "--help"],
    "folder": ["package"],
    "zip file": ["app.zip", "a b"],
    "standard input": ["-", "x"],
}


def both(
    python: Python,
    folder: Path,
    program: list[str],
    *,
    switches: tuple[str, ...] = (),
    **options: Any,
) -> tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]:
    """The program under plain Python, and under us (without a table)."""
    options = {"cwd": folder, **options}
    plain = python.run(*switches, *program, **options)
    report = folder.parent / "report.json"
    ours = python.run(
        *switches, "-m", "pyrometer", "run", "-o", report, "--quiet", *program, **options
    )
    return plain, ours


def without_addresses(text: str) -> str:
    return re.sub("0x[0-9a-f]+", "0x", text)


def facts(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(without_addresses(done.stdout))
    return found


@pytest.mark.every_python
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_facts(python: Python, folder: Path, program: list[str]) -> None:
    text = FACTS if program[0] == "-" else "line 1\nline 2"
    plain, ours = both(python, folder, program, input=text, stdin=None)
    assert facts(ours) == facts(plain)
    assert ours.stderr == plain.stderr


@pytest.mark.parametrize(
    "switches",
    [
        ("-O", "-B"),
        ("-I",),
        ("-E", "-s"),
        ("-P",),
        ("-bu",),
        ("-Werror", "-W", "ignore::ResourceWarning"),
        ("-X", "dev", "-Xutf8=0"),
        ("-Xfaulthandler",),
        ("--check-hash-based-pycs", "never"),
    ],
    ids=" ".join,
)
def test_facts_with_interpreter_options(
    python: Python, folder: Path, switches: tuple[str, ...]
) -> None:
    plain, ours = both(python, folder, ["facts.py"], switches=switches)
    assert facts(ours) == facts(plain)
    assert ours.stderr == plain.stderr


@pytest.mark.every_python
def test_facts_by_the_script_of_the_environment(python: Python, folder: Path) -> None:
    ours = python.profile("-o", folder.parent / "r.json", "--quiet", "facts.py", cwd=folder)
    theirs = facts(python.run("facts.py", cwd=folder))
    # How the environment's script names the interpreter is the installer's choice.
    assert {**facts(ours), "executable": ""} == {**theirs, "executable": ""}


@pytest.mark.every_python
def test_environment_variables_of_python(python: Python, folder: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONWARNINGS": "once",
        "PYTHONOPTIMIZE": "2",
        "PYTHONPATH": "package",
    }
    plain, ours = both(python, folder, ["facts.py"], env=environment)
    assert facts(ours) == facts(plain)


ENDINGS = {
    "end": "print('done')",
    "exit 3": "import sys; sys.exit(3)",
    "exit with text": "import sys; sys.exit('what went wrong')",
    "exit big": "raise SystemExit(256 + 7)",
    "exception": """
        def inner(n):
            return inner(n - 1) if n else 1 / n
        try:
            inner(3)
        except ZeroDivisionError as error:
            raise ValueError("chained") from error
    """,
    "exception group": "raise ExceptionGroup('two', [ValueError(1), OSError(2, 'no')])",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "syntax error": "def broken(:\n    pass",
    "recursion": "def f(): f()\nf()",
    "thread": """
        import threading
        def fail(): raise LookupError('in a thread')
        threading.Thread(target=fail).start()
    """,
    "at exit": "import atexit, sys; atexit.register(print, 'bye'); sys.exit(4)",
    "at exit fails": "import atexit; atexit.register(lambda: 1 / 0)",
    "os._exit": "import os; print('x', flush=True); os._exit(5)",
    "abort": "import os; os.abort()",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "terminated with handler": """
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    """,
    "exec": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(8); exit(8)'])",
    "closed stdout": "import os; os.close(1); print('lost')",
    "closed stderr": "import os, sys; os.close(2); sys.exit(6)",
    "no stderr": "import sys; sys.stderr = None; sys.exit(6)",
    "resource warning": "import sys; sys.stdout.write('no newline')",
}
WITHOUT_REPORT = ("os._exit", "abort", "killed", "terminated", "exec")


@pytest.mark.every_python
@pytest.mark.parametrize("name", ENDINGS)
def test_ending(python: Python, folder: Path, name: str) -> None:
    (folder / "program.py").write_text(textwrap.dedent(ENDINGS[name]))
    plain, ours = both(python, folder, ["program.py"])
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    assert without_addresses(ours.stderr) == without_addresses(plain.stderr)
    assert (folder.parent / "report.json").exists() is (name not in WITHOUT_REPORT)


def test_missing_module(python: Python, folder: Path) -> None:
    plain, ours = both(python, folder, ["-m", "no_such_module"])
    assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)


WAITING = """
import sys, time
print("ready", flush=True)
for _ in range(300):
    time.sleep(0.1)
"""


@pytest.mark.every_python
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_from_outside(python: Python, folder: Path, number: signal.Signals) -> None:
    (folder / "waiting.py").write_text(WAITING)
    report = folder.parent / "report.json"
    plain = _signalled([python.path, "waiting.py"], folder, number)
    command = [python.pyrometer, "run", "-o", report, "--quiet", "waiting.py"]
    ours = _signalled(command, folder, number)
    assert ours == plain
    assert ours[0] == -number
    assert report.exists() is (number == signal.SIGINT)


def _signalled(command: list[Any], folder: Path, number: int) -> tuple[int, str]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=20)
    return process.returncode, stderr


@pytest.mark.every_python
def test_a_file_of_the_program_is_not_hidden_by_a_module_of_ours(
    python: Python, folder: Path
) -> None:
    ours = ("ctypes", "struct", "types", "json", "_json", "unicodedata", "pyrometer", "__future__")
    built_in = python.run("-c", "import sys; print(*sys.builtin_module_names)").stdout.split()
    names = [name for name in ours if name not in built_in]
    for name in names:
        (folder / f"{name}.py").write_text("mine = True")
    (folder / "program.py").write_text(
        f"import {', '.join(names)}\nprint([m.mine for m in ({', '.join(names)})])"
    )
    report = folder.parent / "report.json"
    done = python.profile("-o", report, "program.py", cwd=folder)
    assert (done.returncode, done.stdout) == (0, f"{[True] * len(names)}\n"), done.stderr
    assert done.stderr.endswith(f"wrote {report}\n")


@pytest.mark.every_python
def test_the_program_can_use_what_we_used(python: Python, folder: Path) -> None:
    program = """
        import ctypes, json, struct, pyrometer
        libc = ctypes.CDLL(None)
        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        libc.qsort((ctypes.c_int * 3)(3, 1, 2), 3, 4, callback(lambda a, b: 0))
        print(struct.calcsize("q"), pyrometer.snapshot()["stored"] >= 0)
        try:
            pyrometer.start()
        except RuntimeError as error:
            print(error)
    """
    (folder / "program.py").write_text(textwrap.dedent(program))
    _, ours = both(python, folder, ["program.py"])
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout.startswith("8 True\nthe profiler is already running")


@pytest.mark.every_python
def test_children_are_not_armed_and_report_nothing(python: Python, folder: Path) -> None:
    program = """
        import os, subprocess, sys
        code = "import os; print('PYROMETER_RUN' in os.environ)"
        print(subprocess.check_output([sys.executable, "-c", code]))
        if os.fork() == 0:
            sys.exit(0)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    (folder / "program.py").write_text(textwrap.dedent(program))
    done = python.profile("-o", folder.parent / "report.json", "program.py", cwd=folder)
    assert done.stdout == "b'False\\n'\n0\n"
    assert done.stderr.count("wrote ") == 1


@pytest.mark.every_python
def test_unarmed_python_loads_nothing(python: Python) -> None:
    done = python.run("-c", "import sys; print([m for m in sys.modules if 'pyrometer' in m])")
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("request_text", "line"),
    [
        ('{"pid": 1}', ""),  # meant for another process
        ("{broken", "pyrometer: not profiled: "),
        ("", "pyrometer: not profiled: "),
    ],
)
def test_a_stray_request_harms_nothing(python: Python, request_text: str, line: str) -> None:
    done = python.run(
        "-c",
        "import os; print(os.environ.get('PYROMETER_RUN'))",
        env={**os.environ, "PYROMETER_RUN": request_text},
    )
    assert (done.returncode, done.stdout) == (0, "None\n")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == (1 if line else 0)


def test_reader_that_goes_away(python: Python, folder: Path) -> None:
    """`program | head -1` ends the program as it does without us."""
    (folder / "program.py").write_text("for i in range(100000): print(i)")
    report = folder.parent / "report.json"
    plain = _into_head(f"{python.path} program.py", folder)
    ours = _into_head(f"{python.pyrometer} run --quiet -o {report} program.py", folder)
    assert (ours.returncode, ours.stdout, ours.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )


def _into_head(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    shell = ["bash", "-c", f"set -o pipefail; {command} | head -1"]
    return subprocess.run(shell, cwd=folder, capture_output=True, text=True, check=False)
