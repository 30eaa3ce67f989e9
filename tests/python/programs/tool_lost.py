# SPDX-License-Identifier: Apache-2.0
"""The program takes our tool id away, deep in its calls: `tool_lost.py HOW FOLDER`.

Prints what the program itself sees: ids, and how many events the next tool got.
"""

import contextlib
import sys
import threading
import time

import pyrometer

TICKS = 1000
hits = 0


def count(*_arguments: object) -> None:
    global hits
    hits += 1


def free() -> None:
    """Frees everybody's ids."""
    for number in range(6):
        sys.monitoring.free_tool_id(number)


def take() -> None:
    """The same, and a tool of the program's own moves in."""
    free()
    events = sys.monitoring.events
    sys.monitoring.use_tool_id(4, "tenant")
    sys.monitoring.register_callback(4, events.PY_START, count)
    sys.monitoring.set_local_events(4, tick.__code__, events.PY_START)
    sys.monitoring.set_events(4, 0)


def zero() -> None:
    """Switches everybody's events off."""
    for number in range(6):
        if sys.monitoring.get_tool(number):
            sys.monitoring.set_events(number, 0)


def none() -> None:
    """Takes everybody's callbacks out."""
    for number in range(6):
        for bit in range(16):
            with contextlib.suppress(ValueError):
                sys.monitoring.register_callback(number, 1 << bit, None)


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


def before() -> None:
    burn(0.2)


def deep(levels: int) -> None:
    if levels:
        deep(levels - 1)
        return
    before()
    globals()[sys.argv[1]]()


def tick() -> None:
    pass


def after() -> None:
    for _ in range(TICKS):
        tick()
    burn(0.6)


def leave() -> None:
    burn(0.3)


def thread() -> None:
    """Is in `leave` before the loss and in `burn` alone after it."""
    leave()
    burn(0.3)


def main() -> None:
    worker = threading.Thread(target=thread, name="worker")
    pyrometer.start(rate=250)
    worker.start()
    deep(20)
    after()
    worker.join()
    pyrometer.stop()
    tools = [sys.monitoring.get_tool(number) for number in range(6)]
    events = [sys.monitoring.get_events(number) for number in range(6)]
    print(tools, events, hits)
    pyrometer.export(f"{sys.argv[2]}/profile.json")
    pyrometer.export(f"{sys.argv[2]}/profile.collapsed")
    pyrometer.start()  # a place can be had again
    print(pyrometer.snapshot()["state"])
    pyrometer.stop()


main()
