# SPDX-License-Identifier: Apache-2.0
"""Short threads begin and end while sessions do: `session_storm.py SECONDS SHORT STARTERS`.

SHORT threads live at any time, each a few calls long. STARTERS threads start and stop
sessions without pause. On a busy machine it goes on until there was something to see.
Prints what they saw as one JSON object; "faults" must be empty.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyrometer

PATIENCE = 60.0
seconds, short, starters = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
end = time.monotonic() + seconds
faults = []
counts = {"sessions": 0, "refused": 0, "checked": 0, "threads": 0, "signals": 0}
counting = threading.Lock()
running = 0  # sessions between a start that succeeded and their stop


def is_over() -> bool:
    late = time.monotonic() - end
    enough = counts["sessions"] >= 20 and counts["checked"] >= 5 and counts["signals"] > 0
    return late > PATIENCE or (late > 0 and enough)


def count(name: str, more: int = 1) -> None:
    with counting:
        counts[name] += more


class Gate:
    """Attempts to start pass together; one who has it closed is alone."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.passing = 0
        self.is_closed = False

    @contextmanager
    def passed(self) -> Iterator[None]:
        with self.condition:
            self.condition.wait_for(lambda: not self.is_closed)
            self.passing += 1
        try:
            yield
        finally:
            with self.condition:
                self.passing -= 1
                self.condition.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        with self.condition:
            self.condition.wait_for(lambda: not self.is_closed)
            self.is_closed = True
            self.condition.wait_for(lambda: self.passing == 0)
        try:
            yield
        finally:
            with self.condition:
                self.is_closed = False
                self.condition.notify_all()


gate = Gate()


def step(depth: int) -> int:
    return 0 if depth == 0 else 1 + step(depth - 1)


def short_life() -> None:
    for _ in range(random.randrange(40)):
        step(random.randrange(30))


def keep_short_alive() -> None:
    while not is_over():
        threads = [threading.Thread(target=short_life) for _ in range(max(short // 4, 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        count("threads", len(threads))


def begin_session() -> bool:
    global running
    try:
        pyrometer.start(rate=250)
    except RuntimeError as refusal:
        if "already running" not in str(refusal):
            faults.append(f"start: {refusal}")
        count("refused")
        return False
    with counting:
        running += 1
        if running != 1:
            faults.append(f"{running} sessions at a time")
    return True


def end_session() -> None:
    global running
    with counting:
        running -= 1
    try:
        pyrometer.stop()
    except RuntimeError as refusal:
        faults.append(f"stop: {refusal}")
    count("sessions")


def check_balance() -> None:
    """Nobody starts meanwhile, so the stopped session is still there."""
    found = pyrometer.snapshot()
    if found["signals"] != found["stored"] + sum(found["lost"].values()):
        faults.append(f"{found['signals']} signals, {found['stored']} stored, {found['lost']}")
    count("checked")
    count("signals", found["signals"])


def start_and_stop() -> None:
    while not is_over():
        with gate.passed():
            began = begin_session()
        if not began:
            time.sleep(random.random() * 0.002)
            continue
        time.sleep(random.random() * 0.05)
        if random.random() < 0.5:
            end_session()
            continue
        with gate.closed():
            end_session()
            check_balance()


threads = [threading.Thread(target=keep_short_alive) for _ in range(4)]
threads += [threading.Thread(target=start_and_stop) for _ in range(starters)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({**counts, "faults": faults}))
