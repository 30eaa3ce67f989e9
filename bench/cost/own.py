# SPDX-License-Identifier: Apache-2.0
"""What the profiler takes and what it says it takes: own.py LOAD ROUNDS. One line of JSON.

The same work without it and with it in turn; CPU of the process in seconds, and by the
snapshots around each armed part, the seconds that it counts as its own.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from typing import Any

import loads
import pyrometer

ENOUGH = 0.5  # seconds of CPU of one part


def own_seconds(overhead: dict[str, float]) -> float:
    """As `percent` is made: the larger of what samples saw and what the events' price says."""
    events = max(overhead["callbacks_s"], overhead["events_s"])
    return events + overhead["handler_s"] + overhead["collector_s"] + overhead["switches_s"]


def run(load: loads.Load, times: int) -> float:
    gc.collect()
    begin = time.process_time()
    for _ in range(times):
        load()
    return time.process_time() - begin


def armed(load: loads.Load, times: int) -> dict[str, float]:
    pyrometer.start()
    load()
    before: dict[str, Any] = pyrometer.snapshot()["overhead"]
    took = run(load, times)
    after: dict[str, Any] = pyrometer.snapshot()["overhead"]
    pyrometer.stop()
    parts = {part: after[part] - before[part] for part in before if part.endswith("_s")}
    return {"armed": took, "own": own_seconds(parts)}


def main() -> None:
    load = loads.load(sys.argv[1])
    load()
    times = max(1, round(ENOUGH / run(load, 1)))
    rounds = []
    for _ in range(int(sys.argv[2])):
        rounds.append({"unarmed": run(load, times), **armed(load, times)})
        load()
    print(json.dumps(rounds))


main()
