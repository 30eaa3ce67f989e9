# SPDX-License-Identifier: Apache-2.0
"""The command line itself: what it refuses and how it says so, and what it writes where."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from conftest import ROOT, Python
from pyrometer import _arm, _library
from pyrometer.command import FORMATS, Refusal, run

PROGRAM = "print(sum(i * i for i in range(300_000)))"
ENDINGS = ".sparkprofile, .pb.gz, .collapsed, .json"

pytestmark = pytest.mark.usual_pythons


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "work.py"
    file.write_text(PROGRAM)
    return file


NOTHING = "run: nothing to run: give a SCRIPT, -m MODULE or -c CODE"
MORE = "('pyrometer run --help')"
REFUSED = {
    "run": NOTHING,
    "run --": NOTHING,
    "run -m": "run: -m needs an argument",
    "run -c": "run: -c needs an argument",
    "run missing.py": "run: cannot open 'missing.py': No such file or directory",
    "run -o": f"run: argument -o: expected one argument {MORE}",
    "run --fast work.py": f"run: unrecognized arguments: --fast {MORE}",
    "run --rate 251 work.py": f"run: argument --rate: '251' is not from 1 to 250 {MORE}",
    "run --rate=-1 work.py": f"run: argument --rate: '-1' is not from 1 to 250 {MORE}",
    "run --top 0 work.py": f"run: argument --top: '0' is not from 1 to 100000 {MORE}",
    "run --mode wall work.py": "run: --mode wall is not there yet; there is: cpu",
    "run --budget 0 work.py": "run: argument --budget: '0' is not a percentage "
    f"from 0.01 to 100, or off {MORE}",
    "run --no-native work.py": "run: --no-native is not there yet; "
    "native frames are always sampled",
    "run -o x.html work.py": f"run: -o x.html: .html is not there yet; there are: {ENDINGS}",
    "run -o x.speedscope.json work.py": "run: -o x.speedscope.json: .speedscope.json is not there "
    f"yet; there are: {ENDINGS}",
    "run -o x.txt work.py": f"run: -o x.txt: the format is not known; there are: {ENDINGS}",
    "run -o no/x.json work.py": "run: -o no/x.json: there is no folder '{folder}/no'",
    "run -o dir.json work.py": "run: -o dir.json: is there already and is not a plain file "
    "of yours",
    "report x.pb.gz": "report: not there yet; there is: run",
    "convert": "convert: not there yet; there is: run",
    "diff": "diff: not there yet; there is: run",
    "recover": "recover: not there yet; there is: run",
    "doctor": "doctor: not there yet; there is: run",
    "upload": "upload: not there yet; there is: run",
    "fly": "has no command 'fly'; there is: run ('pyrometer --help')",
}


@pytest.mark.parametrize("command", REFUSED)
def test_refused(python: Python, program: Path, command: str) -> None:
    """One line, status 2, nothing run and nothing written."""
    (program.parent / "dir.json").mkdir()
    done = python.pyrometer_command(*command.split(), cwd=program.parent)
    line = REFUSED[command].format(folder=program.parent)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"pyrometer {line}\n")
    assert sorted(file.name for file in program.parent.iterdir()) == ["dir.json", "work.py"]


def test_folder_that_may_not_be_written(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(Refusal, match="may not be written to"):
        run.check_output(str(program.with_name("x.json")))


@pytest.mark.every_python
def test_help_and_version(python: Python) -> None:
    version = (ROOT / "python/pyrometer/VERSION").read_text().strip()
    assert python.pyrometer_command("--version").stdout == f"pyrometer {version}\n"
    for option in ("--help", "-h"):
        assert "usage: pyrometer run" in python.pyrometer_command(option).stdout
        done = python.profile(option, "anything")
        assert (done.returncode, done.stderr) == (0, "")
        assert "--rate HZ" in done.stdout
    nothing = python.pyrometer_command()
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "usage:" in nothing.stderr


@pytest.mark.every_python
def test_every_format_is_written_for_its_owner_alone(python: Python, program: Path) -> None:
    reports = [program.parent / f"report{ending}" for ending in FORMATS]
    outputs = [argument for report in reports for argument in ("-o", report)]
    done = python.profile(*outputs, program)
    assert done.returncode == 0, done.stderr
    for report in reports:
        assert f"wrote {report}\n" in done.stderr
        assert report.stat().st_size > 0
        assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_without_o_a_sparkprofile_with_name_and_pid(python: Python, program: Path) -> None:
    program.write_text("import os; print(os.getpid()); os.chdir('/')")
    done = python.profile("--quiet", program, cwd=program.parent)
    report = program.parent / f"pyrometer-work-{done.stdout.strip()}.sparkprofile"
    assert report.exists()
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["-m", "work"], "work"),
        (["-m", "json.tool"], "json.tool"),
        (["-c", "pass"], "command"),
        (["-"], "stdin"),
    ],
)
def test_names(arguments: list[str], name: str) -> None:
    assert run.find_program(arguments).name == name


def test_strange_names_stay_in_the_folder() -> None:
    assert run.default_output("a/b\n\x1b../ü") == f"pyrometer-a_b__.._ü-{os.getpid()}.sparkprofile"


@pytest.mark.parametrize(
    ("arguments", "ours", "program"),
    [
        (["x.py", "-o", "y"], [], ["x.py", "-o", "y"]),
        (["-o", "y", "x.py", "--rate"], ["-o", "y"], ["x.py", "--rate"]),
        (["-oy", "--rate=9", "-m", "x", "--"], ["-oy", "--rate=9"], ["-m", "x", "--"]),
        (["--quiet", "-cprint()", "-h"], ["--quiet"], ["-cprint()", "-h"]),
        (["--top", "3", "--", "x.py", "--"], ["--top", "3"], ["x.py", "--"]),
        (["--", "-x.py"], [], ["--", "-x.py"]),
        (["-"], [], ["-"]),
        (["-o", "-m", "x.py"], ["-o", "-m"], ["x.py"]),
        ([], [], []),
    ],
)
def test_split(arguments: list[str], ours: list[str], program: list[str]) -> None:
    assert run.split(arguments) == (ours, program)


@pytest.mark.parametrize(
    ("original", "options"),
    [
        (["python", "-m", "pyrometer", "run"], []),
        (["python", "/bin/pyrometer", "run", "-B"], []),
        (["python", "-Bum", "pyrometer"], ["-Bu"]),
        (
            ["python", "-W", "error", "-Xdev", "-X", "utf8", "-m", "p"],
            ["-W", "error", "-Xdev", "-X", "utf8"],
        ),
        (["python", "-BWerror", "-BX", "dev", "script"], ["-BWerror", "-BX", "dev"]),
        (
            ["python", "--check-hash-based-pycs", "never", "-mp"],
            ["--check-hash-based-pycs", "never"],
        ),
    ],
)
def test_interpreter_options(original: list[str], options: list[str]) -> None:
    assert run.interpreter_options(original) == options


def test_script_with_a_dash(python: Python, program: Path) -> None:
    program.with_name("-x.py").write_text("import sys; print(sys.argv)")
    done = python.profile("--quiet", "--", "-x.py", "--", "-o", cwd=program.parent)
    assert (done.returncode, done.stdout) == (0, "['-x.py', '--', '-o']\n"), done.stderr


def test_program_arguments_may_look_like_ours(python: Python, program: Path) -> None:
    program.write_text("import sys; print(sys.argv[1:])")
    arguments = ["-o", "x.html", "--rate", "0", "--help", "-m", "--", ""]
    done = python.profile("--quiet", "-o", program.with_name("r.json"), program, *arguments)
    assert (done.returncode, done.stdout) == (0, f"{arguments}\n"), done.stderr


@pytest.mark.every_python
def test_report_is_replaced(python: Python, program: Path) -> None:
    report = program.with_name("r.collapsed")
    for _ in range(2):
        assert python.profile("--quiet", "-o", report, program).returncode == 0
    assert [file.name for file in program.parent.iterdir() if "tmp" in file.name] == []


def test_report_that_cannot_be_written(python: Python, program: Path) -> None:
    """It is told, the others are written, and the exit status is the program's."""
    folder = program.with_name("reports")
    folder.mkdir()
    program.write_text("import os, shutil, sys; shutil.rmtree('reports'); sys.exit(9)")
    other = program.with_name("r.json")
    done = python.profile(
        "--quiet", "-o", "reports/a.json", "-o", other, program, cwd=program.parent
    )
    assert done.returncode == 9
    assert done.stderr.startswith(f"pyrometer: '{folder}/a.json' was not written: ")
    assert done.stderr.count("\n") == 1
    assert other.exists()


def test_without_site(python: Python, program: Path) -> None:
    done = python.run(
        "-S", "-m", "pyrometer", "run", program, env={**os.environ, "PYTHONPATH": str(site(python))}
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "pyrometer run: python was started with -S and reads no pyrometer.pth: leave -S out\n"
    )


@pytest.mark.every_python
def test_not_installed(python: Python, program: Path) -> None:
    """A copy on PYTHONPATH is found by import, but its .pth file is not read."""
    copy = program.with_name("copy")
    copy.mkdir()
    (copy / "pyrometer").symlink_to(site(python) / "pyrometer")
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import pyrometer.__main__ as m; m.main()"
    )
    library = f"import pyrometer._library as l; l.PATH = '{copy}/pyrometer/libpyrometer.so'; "
    done = python.run(
        "-c", code.replace("m.main()", f"{library} sys.exit(m.main())"), copy, "run", program
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "pyrometer run: pyrometer is not installed where this Python starts it" in done.stderr


def site(python: Python) -> Path:
    return Path(
        python.run("-c", "import pyrometer; print(pyrometer.__path__[0])").stdout.strip()
    ).parent


def test_python_that_is_too_old(old_python: Python, program: Path) -> None:
    report = program.with_name("r.json")
    done = old_python.profile("-o", report, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == old_python.run(program).stdout
    lines = [line for line in done.stderr.splitlines() if "3.12" in line]
    assert len(lines) == 1
    assert lines[0].startswith("no Python frames, native ones only: ")
    assert report.exists()


def test_variable_has_one_name() -> None:
    assert _arm.VARIABLE in (ROOT / "python/pyrometer.pth").read_text()


def test_library_stands_beside_the_package() -> None:
    assert Path(_library.PATH).parent == Path(_library.__file__).parent
