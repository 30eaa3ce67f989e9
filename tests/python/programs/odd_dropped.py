# SPDX-License-Identifier: Apache-2.0
"""A thousand functions that are dropped as soon as they have run: `odd_dropped.py FOLDER`."""

import sys

import pyrometer

KINDS = """
class Body_{0}:
    items = list(number for number in range(3))
    method = lambda self: {0}
def made_{0}(n):
    return (lambda: Body_{0}().method() + n)()
"""


def use(number: int) -> None:
    names: dict[str, object] = {"__name__": f"module_{number % 7}"}
    exec(KINDS.format(number), names)
    made = names[f"made_{number}"]
    for _ in range(number % 5 + 1):
        assert made(1) == number + 1  # type: ignore[operator]


pyrometer.start(rate=250)
for number in range(1000):
    use(number)
pyrometer.stop()
pyrometer.export(f"{sys.argv[1]}/profile.json")
