# SPDX-License-Identifier: Apache-2.0
"""Two chains take turns in a loop: `chains.py SECONDS` of CPU. No stack may mix them.

The functions do nothing but call, so almost every sample falls between two events.
"""

import sys
import time


def leaf() -> None:
    pass


def b() -> None:
    leaf()


def a() -> None:
    b()


def d() -> None:
    leaf()


def c() -> None:
    d()


def main(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(1_000):
            a()
            c()


if __name__ == "__main__":
    main(float(sys.argv[1]))
