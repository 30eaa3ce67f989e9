# SPDX-License-Identifier: Apache-2.0
"""What two ways of looking say of the same event-loop threads (loops.py).

python bench/free_threaded/compare.py PYTHON, where PYTHON has Pyrometer installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

PROGRAM = str(Path(__file__).with_name("loops.py"))


def run(python: str, *arguments: str, **settings: object) -> tuple[dict[str, object], list[str]]:
    env = {**os.environ, "PYROMETER": json.dumps(settings) if settings else ""}
    done = subprocess.run(
        [python, PROGRAM, *arguments], env=env, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout), done.stderr.splitlines()


def show(title: str, shares: Counter[str]) -> None:
    whole = sum(shares.values()) or 1
    print(title)
    for name, value in shares.most_common(5):
        print(f"  {100 * value / whole:5.1f} %  {name}")


def main() -> None:
    python = sys.argv[1]
    account, rows = run(python, every=1, top=20, format="json")
    print("kernel, CPU seconds by thread:", account["cpu_s"])
    times: Counter[str] = Counter()
    for row in map(json.loads, rows):
        if row["profile"] == "function":
            times[row["name"].partition(" (")[0]] += row["tottime"]
    show("Pyrometer, CPU by function:", times)
    seen, _ = run(python, "--sample")
    show("sys._current_frames, sightings by function:", Counter(dict(seen["seen"])))


if __name__ == "__main__":
    main()
