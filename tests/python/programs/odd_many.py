# SPDX-License-Identifier: Apache-2.0
"""More codes than are registered: `odd_many.py COUNT FOLDER`. Prints the growth in MB."""

import os
import sys
import time
from pathlib import Path
from types import FunctionType

import pyrometer


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def template() -> int:
    return 1


def run_many(count: int) -> None:
    for number in range(count):
        name = f"made_{number}"
        code = template.__code__.replace(co_name=name, co_qualname=name)
        FunctionType(code, {"__name__": "many"})()


def burn() -> None:
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        sum(range(100))


def late() -> None:
    burn()


run_many(100)
pyrometer.start(rate=250)
before = resident()
run_many(int(sys.argv[1]))
print(resident() - before)
late()
pyrometer.stop()
pyrometer.export(f"{sys.argv[2]}/profile.json")
pyrometer.export(f"{sys.argv[2]}/profile.collapsed")
