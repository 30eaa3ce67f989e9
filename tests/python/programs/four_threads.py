# SPDX-License-Identifier: Apache-2.0
"""Four threads with CPU loads 1:2:4:8, each in a function of its own name."""

import json
import threading
import time


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(2_000):
            pass


def load_1() -> None:
    burn(0.4)


def load_2() -> None:
    burn(0.8)


def load_4() -> None:
    burn(1.6)


def load_8() -> None:
    burn(3.2)


threads = [
    threading.Thread(target=load_1, name="one"),
    threading.Thread(target=load_2, name="two-with-a-name-longer-than-comm"),
    threading.Thread(target=load_4, name="vier-für-Ünïcode"),
    threading.Thread(target=load_8, name="eight"),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps([thread.name for thread in threads]))
