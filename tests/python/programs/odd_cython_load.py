# SPDX-License-Identifier: Apache-2.0
"""Python and Cython call each other: `odd_cython_load.py FOLDER`."""

import contextlib
import sys
import time

import odd_cython  # type: ignore[import-not-found]
import pyrometer


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


def leaf(number: int) -> int:
    burn(0.001)
    return number


def fail(number: int) -> int:
    burn(0.004)
    raise KeyError(number)


def middle(_number: int) -> int:
    return int(odd_cython.c_calls(leaf, 2))


def work() -> None:
    for _ in range(30):
        odd_cython.c_calls(leaf, 5)
        with contextlib.suppress(KeyError):
            odd_cython.c_raises(fail)
        odd_cython.c_raises(middle)
        list(map(leaf, odd_cython.c_generator(3)))
        odd_cython.Class().c_method(leaf)


def after() -> None:
    burn(0.3)


pyrometer.start(rate=250)
work()
after()
pyrometer.stop()
pyrometer.export(f"{sys.argv[1]}/profile.json")
pyrometer.export(f"{sys.argv[1]}/profile.collapsed")
