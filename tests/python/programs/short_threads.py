# SPDX-License-Identifier: Apache-2.0
"""Threads of some milliseconds' CPU, eight at a time: `short_threads.py THREADS`.

Prints the CPU they used, by the kernel's clocks, as JSON.
"""

import json
import sys
import threading
import time

used = []


def burn() -> None:
    while time.thread_time() < 0.015:
        sum(range(2_000))
    used.append(time.thread_time())


left = int(sys.argv[1])
while left > 0:
    threads = [threading.Thread(target=burn, name="short") for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left -= 8
print(json.dumps({"threads": len(used), "used": sum(used)}))
