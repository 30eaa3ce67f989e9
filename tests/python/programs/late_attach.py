# SPDX-License-Identifier: Apache-2.0
"""Is profiled only once five threads stand forty calls deep. Usage: late_attach.py REPORT...

Two of the threads make no Python call while they are profiled, so they raise no event:
one is inside a single C function, which has let the GIL go, one loops. The others call.
"""

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable

import pyrometer

DEPTH = 40
SECONDS = 1.0  # of CPU that the looping thread burns while it is profiled

deep = threading.Semaphore(0)


def one_call() -> None:
    deep.release()
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1_000_000_000)  # minutes


def loop() -> None:
    deep.release()
    while True:
        for _ in range(1_000):
            pass


def called() -> None:
    for _ in range(20_000):
        pass


def calls() -> None:
    deep.release()
    while True:
        called()
        time.sleep(0.005)


# level_00 calls level_01 and so on; the last one calls what it was given.
for number in range(DEPTH):
    callee = f"level_{number + 1:02}(work)" if number + 1 < DEPTH else "work()"
    exec(compile(f"def level_{number:02}(work):\n    {callee}\n", "levels", "exec"))


def start(name: str, work: Callable[[], None]) -> threading.Thread:
    first = globals()["level_00"]
    thread = threading.Thread(target=first, args=(work,), name=name, daemon=True)
    thread.start()
    return thread


looping = start("loop", loop)
start("one-call", one_call)
for number in range(3):
    start(f"caller-{number}", calls)
for _ in range(5):
    deep.acquire()
time.sleep(0.2)
pyrometer.start(rate=250)
clock = time.pthread_getcpuclockid(looping.ident or 0)
end = time.clock_gettime(clock) + SECONDS
while time.clock_gettime(clock) < end:
    time.sleep(0.02)
pyrometer.stop()
for report in sys.argv[1:]:
    pyrometer.export(report)
os._exit(0)  # nobody waits for the threads
