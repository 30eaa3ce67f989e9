# SPDX-License-Identifier: Apache-2.0
"""Everything that may come between a shadow stack and the truth, in random order.

    python matrix.py EVENTS [--seed N] [--seconds S] [--only NAME] [--late-greenlet] ...

With a library of the oracle build (src/python/oracle.h) and PYROMETER_ORACLE set: runs
until the callbacks have had EVENTS events, and prints what the oracle found as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import sys
import threading
import time
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import matrix_async
import matrix_calls
import matrix_generators
import matrix_greenlets
import matrix_tools
import pyrometer

THREADS = 4
Scenario = Callable[[Random], None]
Context = Callable[[Random], contextlib.AbstractContextManager[None]]


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("events", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--only", default="", help="scenarios whose name has this in it")
    parser.add_argument("--context", default="", help="likewise, of contexts")
    parser.add_argument("--late-greenlet", action="store_true", help="import it after the start")
    parser.add_argument("--no-greenlet", action="store_true")
    parser.add_argument("--no-gevent", action="store_true")
    parser.add_argument("--no-threads", action="store_true")
    return parser.parse_args()


class Matrix:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.ran: dict[str, int] = {}
        self.missing: list[str] = []
        self.began = time.monotonic()

    def load_greenlets(self) -> None:
        if self.given.no_greenlet:
            return
        try:
            matrix_greenlets.load(with_gevent=not self.given.no_gevent)
        except ImportError as error:
            self.missing.append(str(error))

    def scenarios(self) -> list[Scenario]:
        found = [
            *matrix_generators.SCENARIOS,
            *matrix_calls.SCENARIOS,
            *matrix_async.SCENARIOS,
            *matrix_greenlets.scenarios(),
        ]
        return [one for one in found if self.given.only in one.__name__]

    def contexts(self) -> list[Context]:
        return [one for one in matrix_tools.CONTEXTS if self.given.context in one.__name__]

    def one(self, rng: Random, scenario: Scenario, context: Context) -> None:
        # Exceptions that a tool, a signal or another thread throws may come out anywhere.
        with contextlib.suppress(matrix_tools.Interrupted), context(rng):
            scenario(rng)
        for name in (scenario.__name__, context.__name__):
            self.ran[name] = self.ran.get(name, 0) + 1

    def some(self, seed: int, count: int) -> None:
        rng = Random(seed)
        scenarios, contexts = self.scenarios(), self.contexts()
        for _ in range(count):
            often_plain = rng.random() < 0.7 and not self.given.context
            context = matrix_tools.plain if often_plain else rng.choice(contexts)
            self.one(rng, rng.choice(scenarios), context)
        sys.settrace(None)

    def each(self, rng: Random) -> None:
        """All scenarios and all contexts."""
        scenarios, contexts = self.scenarios(), self.contexts()
        for at in range(max(len(scenarios), len(contexts))):
            self.one(rng, scenarios[at % len(scenarios)], contexts[at % len(contexts)])
        sys.settrace(None)

    def together(self, rng: Random) -> None:
        threads = [
            threading.Thread(target=self.some, args=(rng.getrandbits(32), 15), name=f"matrix-{i}")
            for i in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        self.some(rng.getrandbits(32), 10)
        for thread in threads:
            thread.join()

    def is_done(self) -> bool:
        oracle = pyrometer.snapshot().get("oracle")
        if oracle is None:
            sys.exit("this libpyrometer.so is not one of the oracle build")
        late = time.monotonic() - self.began > self.given.seconds
        return late or oracle["events"] >= self.given.events

    def run(self) -> dict[str, Any]:
        rng = Random(self.given.seed)
        if not self.given.late_greenlet:
            self.load_greenlets()
        pyrometer.start()
        if self.given.late_greenlet:
            self.load_greenlets()
        self.each(rng)
        while not self.is_done():
            self.some(rng.getrandbits(32), 30)
            if not self.given.no_threads:
                self.together(rng)
        pyrometer.stop()
        return self.result(pyrometer.snapshot())

    def result(self, found: dict[str, Any]) -> dict[str, Any]:
        return {
            "python": platform.python_version(),
            "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
            "state": found["state"],
            "reason": found["reason"],
            **found["oracle"],
            "resyncs": found["resyncs"],
            "depth_max": found["depth_max"],
            "seconds": round(time.monotonic() - self.began, 1),
            "missing": self.missing,
            "ran": self.ran,
        }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with matrix_tools.quiet_stderr():
        outcome = Matrix(read_arguments()).run()
    print(json.dumps(outcome))
