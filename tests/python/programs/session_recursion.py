# SPDX-License-Identifier: Apache-2.0
"""Sessions start and stop while threads recurse: `session_recursion.py CYCLES THREADS`.

Each thread recurses at random depth in a function of its own name, so a stack that mixes
the names of two threads never existed. Prints one JSON object; "mixed" must be empty.
"""

import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyrometer

cycles, threads = int(sys.argv[1]), int(sys.argv[2])
CHECK_EACH, ENOUGH, PATIENCE = 10, 40, 10.0
stop = False
functions = {}
for number in range(threads):
    code = (
        f"def own_{number}(depth):\n    return 0 if depth == 0 else 1 + own_{number}(depth - 1)\n"
    )
    exec(compile(code, "own.py", "exec"), functions)


def recurse(function: Callable[[int], int]) -> None:
    while not stop:
        function(random.randrange(400))


def own_names(stack: str) -> set[str]:
    return {frame.split(" ")[0] for frame in stack.split(";") if ".own_" in frame}


def mixed_stacks(path: Path) -> int:
    stacks = [line.rsplit(" ", 1)[0] for line in path.read_text().splitlines()]
    for stack in stacks:
        thread = stack.split(";")[0]
        names = own_names(stack)
        if len(names) > 1 or (names and names != {f"__main__.{thread}"}):
            mixed.append(stack)
    return sum(bool(own_names(stack)) for stack in stacks)


def wait_for_samples() -> None:
    end = time.monotonic() + PATIENCE
    while pyrometer.snapshot()["stored"] < ENOUGH and time.monotonic() < end:
        time.sleep(0.01)


sys.setswitchinterval(0.0002)  # with a GIL: more starts in the same time, in more places
mixed, seen = [], 0
for number in range(threads):
    function = functions[f"own_{number}"]
    function.__globals__["__name__"] = "__main__"
    threading.Thread(target=recurse, args=(function,), name=f"own_{number}", daemon=True).start()

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "stacks.collapsed")
    for cycle in range(cycles):
        pyrometer.start(rate=250)
        if cycle % CHECK_EACH == 0:
            wait_for_samples()
        pyrometer.stop()
        if cycle % CHECK_EACH == 0:
            pyrometer.export(path)
            seen += mixed_stacks(path)
stop = True
print(json.dumps({"stacks": seen, "mixed": mixed}))
sys.stdout.flush()
