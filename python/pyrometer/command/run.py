# SPDX-License-Identifier: Apache-2.0
"""pyrometer run: become `python PROGRAM`, with the profiler armed.

This process checks everything that can be checked beforehand and then replaces
itself (same pid, same files, same interpreter options) by plain Python on the
program; pyrometer._arm starts the profiler there and reports at exit. So exit
status, signals, traceback, sys.argv, __main__ and the standard streams are Python's
own, and nothing stands between the program and whoever started it.
"""

from __future__ import annotations

import argparse
import json
import os
import site
import stat
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pyrometer import _arm, _library
from pyrometer.command import FORMATS, FORMATS_LATER, Refusal

RATES = range(1, 251)
TOP_DEFAULT = 15
WITH_VALUE = ("-o", "--rate", "--budget", "--mode", "--top")


class Program(NamedTuple):
    """What to run: the arguments for Python, and a name for the report."""

    arguments: list[str]
    name: str


def main(arguments: list[str]) -> int:
    """Ends with the program's exit status; returns only with `--help`."""
    ours, rest = split(arguments)
    options = _parser().parse_args(ours)
    if options.help:
        print(HELP, end="")
        return 0
    return _run(options, rest)


def _run(options: argparse.Namespace, rest: list[str]) -> NoReturn:
    _refuse_what_is_not_there(options)
    program = find_program(rest)
    outputs = [check_output(path) for path in options.output or [default_output(program.name)]]
    check_installed()
    request = {
        "pid": os.getpid(),
        "outputs": outputs,
        "rate": options.rate,
        "budget": options.budget,
        "top": options.top,
        "quiet": options.quiet,
    }
    become(program, request)


HELP = f"""\
usage: pyrometer run [OPTIONS] (SCRIPT | -m MODULE | -c CODE) [ARGS...]

Runs a Python program just as python does and writes its CPU profile when it ends.
stdout is the program's; a table goes to stderr; the exit status is the program's.

options:
  -o FILE            write the profile to FILE, its format by the ending: {", ".join(FORMATS)};
                     may be given more than once
                     (default: pyrometer-NAME-PID.sparkprofile)
  --rate HZ          samples per second of CPU and thread, {RATES[0]} to {RATES[-1]} (default: 100)
  --top N            functions in the table (default: {TOP_DEFAULT})
  --quiet            no table
  --budget PCT|off   CPU that profiling may use, in percent of the program's: where it would
                     need more, calls are counted part of the time only (default: off)
  --mode cpu         measure CPU time; wall time is not there yet
  -h, --help         this text

A program that ends by os._exit, exec or an unhandled signal such as SIGTERM leaves no
profile. Python 3.12 or newer is needed for Python frames.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refusal(f"run: {message} ('pyrometer run --help')")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-o", dest="output", action="append", metavar="FILE")
    parser.add_argument("--rate", type=_rate, default=100, metavar="HZ")
    parser.add_argument("--top", type=_top, default=TOP_DEFAULT, metavar="N")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--budget", type=_budget, default=None, metavar="PCT")
    parser.add_argument("--mode", default="cpu", choices=("cpu", "wall"))
    parser.add_argument("--no-native", action="store_true")
    return parser


def _rate(text: str) -> int:
    return _number(text, RATES)


def _top(text: str) -> int:
    return _number(text, range(1, 100_001))


def _budget(text: str) -> float | None:
    if text == "off":
        return None
    try:
        percent = float(text)
    except ValueError:
        percent = 0.0
    if 0.01 <= percent <= 100:
        return percent
    raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0.01 to 100, or off")


def _number(text: str, allowed: range) -> int:
    if text.isascii() and text.isdigit() and int(text) in allowed:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not from {allowed[0]} to {allowed[-1]}")


def _refuse_what_is_not_there(options: argparse.Namespace) -> None:
    if options.mode == "wall":
        raise Refusal("run: --mode wall is not there yet; there is: cpu")
    if options.no_native:
        raise Refusal("run: --no-native is not there yet; native frames are always sampled")


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our options, and the program with its own arguments, which nobody may touch."""
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        if argument == "--":
            rest = arguments[index + 1 :]
            # `--` ends the options, for Python too where the script looks like one.
            return arguments[:index], ["--", *rest] if rest[:1] and rest[0][:1] == "-" else rest
        if not argument.startswith("-") or argument == "-" or argument[:2] in ("-m", "-c"):
            break
        index += 2 if argument in WITH_VALUE else 1
    return arguments[:index], arguments[index:]


def find_program(rest: list[str]) -> Program:
    """Checks as much of the program as Python does not tell by itself."""
    if not rest:
        raise Refusal("run: nothing to run: give a SCRIPT, -m MODULE or -c CODE")
    first = rest[0]
    if first[:2] in ("-m", "-c"):
        value = first[2:] or "".join(rest[1:2])
        if not first[2:] and len(rest) < 2:
            raise Refusal(f"run: {first} needs an argument")
        return Program(rest, value if first[:2] == "-m" else "command")
    if first == "--":
        return Program(rest, _script_name(rest[1]))
    return Program(rest, _script_name(first))


def _script_name(script: str) -> str:
    if script == "-":
        return "stdin"
    try:
        # A folder or a zip file with a __main__.py is a program too.
        os.close(os.open(script, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Refusal(f"run: cannot open {script!r}: {reason}") from None
    return Path(os.path.abspath(script)).stem  # noqa: PTH100 - no symbolic link is followed


def default_output(name: str) -> str:
    """A file in the current folder, as the html page is not there yet."""
    plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:100]
    return f"pyrometer-{plain}-{os.getpid()}.sparkprofile"


def check_output(path: str) -> str:
    """The absolute path of a report that can be written, as far as can be told beforehand."""
    there = ", ".join(FORMATS)
    for ending in FORMATS_LATER:
        if path.endswith(ending):
            raise Refusal(f"run: -o {path}: {ending} is not there yet; there are: {there}")
    if not path.endswith(FORMATS):
        raise Refusal(f"run: -o {path}: the format is not known; there are: {there}")
    whole = os.path.abspath(path)  # noqa: PTH100 - `resolve` would follow a link
    folder = os.path.dirname(whole)  # noqa: PTH120
    if not os.path.isdir(folder):  # noqa: PTH112
        raise Refusal(f"run: -o {path}: there is no folder {folder!r}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Refusal(f"run: -o {path}: the folder {folder!r} may not be written to")
    try:
        status = os.lstat(whole)
    except FileNotFoundError:
        return whole
    except OSError as error:
        raise Refusal(f"run: -o {path}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise Refusal(f"run: -o {path}: is there already and is not a plain file of yours")
    return whole


def check_installed() -> None:
    """Refuses where the interpreter would not read pyrometer.pth, or the library not load."""
    if sys.flags.no_site:
        raise Refusal("run: python was started with -S and reads no pyrometer.pth: leave -S out", 1)
    home = Path(_library.PATH).parent.parent
    folders = list(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    effective = any(_same(home, folder) for folder in folders)
    if not effective or not (home / "pyrometer.pth").is_file():
        raise Refusal(
            "run: pyrometer is not installed where this Python starts it (no pyrometer.pth in "
            f"{folders[0]}): {sys.executable} -m pip install pyrometer",
            1,
        )
    try:
        _library.library()
    except (OSError, AttributeError) as error:
        raise Refusal(f"run: {_library.PATH} cannot be loaded: {error}", 1) from None


def _same(one: Path, other: str) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _letters(argument: str) -> tuple[str, str, str]:
    """The parts of `-BuWerror`: switches, the first letter that takes a value, the value."""
    for index, letter in enumerate(argument[1:], 1):
        if letter in "mcWX":
            return argument[1:index], letter, argument[index + 1 :]
    return argument[1:], "", ""


def interpreter_options(original: list[str]) -> list[str]:
    """The options in sys.orig_argv that came before `-m pyrometer` or the script's path."""
    options: list[str] = []
    arguments = iter(original[1:])
    for argument in arguments:
        if argument in ("-", "--") or not argument.startswith("-"):
            break
        long = argument.startswith("--")
        switches, letter, value = ("", "", "") if long else _letters(argument)
        if letter in ("m", "c"):
            options += [f"-{switches}"] if switches else []
            break
        options.append(argument)
        # -W, -X and --check-hash-based-pycs, with their value apart
        if long or (letter and not value):
            options.append(next(arguments, ""))
    return options


def _own_options() -> list[str]:
    if sys.version_info >= (3, 10):
        return interpreter_options(sys.orig_argv)
    # 3.9 does not keep the command line; the newest 3.9 has been out for long.
    from subprocess import _args_from_interpreter_flags  # type: ignore[attr-defined]

    return list(_args_from_interpreter_flags())


def become(program: Program, request: dict[str, Any]) -> NoReturn:
    """Replaces this process by Python on the program."""
    if not sys.executable:
        raise Refusal("run: this Python does not know its own path (sys.executable)", 1)
    command = [sys.executable, *_own_options(), *program.arguments]
    environment = {**os.environ, _arm.VARIABLE: json.dumps(request)}
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(sys.executable, command, environment)
    except OSError as error:
        raise Refusal(f"run: cannot run {sys.executable!r}: {error.strerror}", 1) from None
