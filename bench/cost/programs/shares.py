# SPDX-License-Identifier: Apache-2.0
"""Four threads that burn CPU as 1:2:4:8, each by the kernel's clock. Prints what each burnt."""

from __future__ import annotations

import json
import threading
import time

UNIT = 0.3  # seconds of CPU


# Each with its own lines: there are profilers that tell lines only.
def burn_1() -> None:
    while time.thread_time() < UNIT:
        for i in range(2000):
            i * i


def burn_2() -> None:
    while time.thread_time() < 2 * UNIT:
        for i in range(2000):
            i * i


def burn_4() -> None:
    while time.thread_time() < 4 * UNIT:
        for i in range(2000):
            i * i


def burn_8() -> None:
    while time.thread_time() < 8 * UNIT:
        for i in range(2000):
            i * i


PARTS = (burn_1, burn_2, burn_4, burn_8)


def main() -> dict[str, float]:
    """What each thread burnt of CPU."""
    truth = {}

    def thread(name: str, burn: object) -> None:
        burn()  # type: ignore[operator]
        truth[name] = time.thread_time()

    threads = [threading.Thread(target=thread, args=(part.__name__, part)) for part in PARTS]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return truth


if __name__ == "__main__":
    print(json.dumps(main()))
