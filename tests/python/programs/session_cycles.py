# SPDX-License-Identifier: Apache-2.0
"""What is left after many sessions: `session_cycles.py CYCLES WORKERS`.

Eight threads share the cycles of start and stop while WORKERS threads work. Prints memory,
what is left, and the workers' speed before and after as one JSON object.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import pyrometer

cycles, count = int(sys.argv[1]), int(sys.argv[2])
WINDOWS = 10
stop = False
progress = [(0, 0.0)] * count
left = cycles
taking = threading.Lock()


def call(value: int) -> int:
    return value + 1


def work(index: int) -> None:
    calls = 0
    while not stop:
        for _ in range(1_000):
            calls = call(calls)
        progress[index] = (calls, time.thread_time())


def take_a_cycle() -> bool:
    global left
    with taking:
        left -= 1
        return left >= 0


def cycle() -> None:
    while take_a_cycle():
        while True:
            try:
                pyrometer.start()
                break
            except RuntimeError:
                time.sleep(0.001)
        pyrometer.stop()


def run_cycles(number: int) -> float:
    global left
    left = number
    threads = [threading.Thread(target=cycle) for _ in range(8)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - begin


def speed() -> float:
    """Calls a second of CPU, in the best of some short times: other programs only slow down."""
    best = 0.0
    for _ in range(WINDOWS):
        before = list(progress)
        time.sleep(0.1)
        pairs = list(zip(before, progress))
        calls = sum(now[0] - then[0] for then, now in pairs)
        best = max(best, calls / max(sum(now[1] - then[1] for then, now in pairs), 1e-3))
    return best


def residue() -> list[str]:
    """What a stopped profiler must not leave behind."""
    left = [f"tool {tool}" for tool in range(6) if sys.monitoring.get_tool(tool)]
    left += [f"events of {tool}" for tool in range(6) if sys.monitoring.get_events(tool)]
    comms = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    left += [comm for comm in comms if comm == "pyrometer"]
    timers = Path("/proc/self/timers")
    if timers.exists():
        left += [line for line in timers.read_text().splitlines() if line.startswith("ID")]
    return left


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


for index in range(count):
    threading.Thread(target=work, args=(index,), daemon=True).start()
time.sleep(0.3)
speed_before = speed()
run_cycles(cycles // 4)
memory_early = memory()
seconds = run_cycles(cycles - cycles // 4)
memory_late = memory()
left_behind = residue()
pyrometer.reset()
speed_after = speed()
stop = True
print(
    json.dumps(
        {
            "speed_before": speed_before,
            "speed_after": speed_after,
            "memory_early": memory_early,
            "memory_late": memory_late,
            "residue": left_behind,
            "seconds_a_cycle": seconds / (cycles - cycles // 4),
        }
    )
)
sys.stdout.flush()
