# SPDX-License-Identifier: Apache-2.0
"""The command line: `pyrometer COMMAND ...`, also as `python -m pyrometer COMMAND ...`."""

from __future__ import annotations

import sys

import pyrometer
from pyrometer.command import Refusal, run

USAGE = """\
usage: pyrometer run [OPTIONS] (SCRIPT | -m MODULE | -c CODE) [ARGS...]
       pyrometer --version | --help

Which Python functions and which native code burn the CPU of a program, measured
from inside it.

commands:
  run        run a Python program and write its profile ('pyrometer run --help')

not there yet: report, convert, diff, recover, doctor, upload
"""

LATER = ("report", "convert", "diff", "recover", "doctor", "upload")


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns the exit status: 0 ok, 1 failed, 2 usage, 3 partial."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
    try:
        return _dispatch(name, rest)
    except Refusal as refusal:
        print(f"pyrometer {refusal}", file=sys.stderr)
        return refusal.status


def _dispatch(name: str, rest: list[str]) -> int:
    if name in ("-h", "--help", "help"):
        print(USAGE, end="")
    elif name in ("-V", "--version"):
        print(f"pyrometer {pyrometer.__version__}")
    elif name == "run":
        return run.main(rest)
    elif name in LATER:
        raise Refusal(f"{name}: not there yet; there is: run")
    elif name == "":
        print(USAGE, end="", file=sys.stderr)
        return 2
    else:
        raise Refusal(f"has no command {name!r}; there is: run ('pyrometer --help')")
    return 0


if __name__ == "__main__":
    sys.exit(main())
