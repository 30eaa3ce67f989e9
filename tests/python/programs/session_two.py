# SPDX-License-Identifier: Apache-2.0
"""One thread lives through two sessions in two places: `session_two.py FOLDER calls|silent`.

It stands in outer -> spin in the first, in other -> spin2 in the second. "silent": it
calls nothing meanwhile, so no event tells where it is.
"""

import sys
import threading
import time
from pathlib import Path

import pyrometer

folder, calls = sys.argv[1], sys.argv[2] == "calls"
phase = 0


def call() -> None:
    pass


def spin() -> None:
    while phase == 0:
        if calls:
            call()


def spin2() -> None:
    while phase == 1:
        if calls:
            call()


def outer() -> None:
    spin()


def other() -> None:
    spin2()


def live() -> None:
    outer()
    other()


def session(name: str) -> None:
    pyrometer.start(rate=250)
    time.sleep(0.5)
    pyrometer.stop()
    pyrometer.export(Path(folder, name))


thread = threading.Thread(target=live)
thread.start()
time.sleep(0.1)
session("first.collapsed")
phase = 1
time.sleep(0.1)
session("second.collapsed")
phase = 2
thread.join()
