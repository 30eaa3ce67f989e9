# SPDX-License-Identifier: Apache-2.0
"""Subinterpreters by whatever name this Python has them."""

import importlib
from typing import Any


def _module() -> tuple[str, Any]:
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            return name, importlib.import_module(name)
        except ImportError:
            continue
    raise SystemExit("this Python has no subinterpreters")


NAME, MODULE = _module()


def create(*, shared_gil: bool = False) -> Any:
    """With a GIL of its own, or with the main interpreter's as in a C host of old."""
    if not shared_gil:
        return MODULE.create()
    return MODULE.create("legacy") if NAME == "_interpreters" else MODULE.create(isolated=False)


def execute(interpreter: Any, code: str) -> None:
    if NAME == "_interpreters":
        failed = MODULE.exec(interpreter, code)
        if failed is not None:
            raise RuntimeError(failed.formatted)
    else:
        MODULE.run_string(interpreter, code)


def destroy(interpreter: Any) -> None:
    MODULE.destroy(interpreter)


def run(code: str, *, shared_gil: bool = False) -> None:
    interpreter = create(shared_gil=shared_gil)
    execute(interpreter, code)
    destroy(interpreter)
