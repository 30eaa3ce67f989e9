# SPDX-License-Identifier: Apache-2.0
"""Four named threads use the same CPU each, in Python: `four_equal.py SECONDS`.

Prints the CPU that the threads and the process used, by the kernel's clocks, as JSON.
"""

import json
import sys
import threading
import time

seconds = float(sys.argv[1])
used = {}


def call(value: int) -> int:
    return value + 1


def burn() -> None:
    begin = time.thread_time()
    value = 0
    while time.thread_time() < begin + seconds:
        for _ in range(1_000):
            value = call(value)
    used[threading.current_thread().name] = time.thread_time() - begin


def north() -> None:
    burn()


def east() -> None:
    burn()


def south() -> None:
    burn()


def west() -> None:
    burn()


begin = time.process_time()
threads = [
    threading.Thread(target=function, name=function.__name__)
    for function in (north, east, south, west)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"threads": used, "process": time.process_time() - begin}))
