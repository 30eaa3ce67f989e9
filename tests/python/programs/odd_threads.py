# SPDX-License-Identifier: Apache-2.0
"""Code that 64 threads make at once: `odd_threads.py FOLDER`."""

import sys
import threading

import pyrometer

THREADS, EACH = 64, 50
gate = threading.Barrier(THREADS)
TEXT = """
def made_{0}_{1}(n):
    return n
"""


def make(thread: int) -> None:
    gate.wait()
    for number in range(EACH):
        names: dict[str, object] = {"__name__": f"thread_{thread}"}
        exec(TEXT.format(thread, number), names)
        for _ in range(2):
            names[f"made_{thread}_{number}"](1)  # type: ignore[operator]


pyrometer.start(rate=250)
threads = [threading.Thread(target=make, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
pyrometer.stop()
pyrometer.export(f"{sys.argv[1]}/profile.json")
