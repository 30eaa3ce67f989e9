# SPDX-License-Identifier: Apache-2.0
"""Measures the handler inside a Python process: python_cost.py LIBRARY [SECONDS]."""

import ctypes
import json
import os
import re
import sys
import time
from collections.abc import Callable

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one thread is measured at a time

try:
    import numpy
except ImportError:
    have_numpy = False
else:
    have_numpy = True


def nested(depth: int) -> int:
    return nested(depth - 1) + 1 if depth else sum(range(2000))


def plain() -> None:
    for i in range(50):
        nested(i % 3)


def callbacks() -> None:
    def key(text: str) -> str:
        return re.sub(r"\d+", lambda match: json.dumps([match.group()] * 5), text)

    sorted((f"{i * 7919 % 1009}-{i}" for i in range(200)), key=key)


def recursion() -> None:
    def through(depth: int) -> int:
        return max(map(through, [depth - 1])) if depth else sum(range(20000))

    for _ in range(20):
        through(40)


def arrays() -> None:
    a = numpy.random.rand(220, 220)
    for _ in range(5):
        a = numpy.sin(a @ a) + a.mean(axis=0)
        numpy.linalg.svd(a[:60, :60])


def measure(library: ctypes.CDLL, name: str, load: Callable[[], None], seconds: float) -> None:
    load()
    library.cost_start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        load()
    library.cost_stop(name.encode())


def main() -> None:
    library = ctypes.PyDLL(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 8.0
    print(f"\nPython {sys.version.split()[0]}, a signal at every tick of the CPU clock", flush=True)
    library.cost_begin()
    loads = {
        "pure Python": plain,
        "sort, re and json callbacks": callbacks,
        "map in map": recursion,
    }
    if have_numpy:
        loads["numpy"] = arrays
    for name, load in loads.items():
        measure(library, name, load, seconds)
    library.cost_tables()


main()
