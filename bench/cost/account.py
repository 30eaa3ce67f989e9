# SPDX-License-Identifier: Apache-2.0
"""How much of the process's CPU is in the profile: account.py LOAD. One line of JSON.

`cpu` is what the kernel says the process used while it was armed; `sampled` and
`unsampled` are what the profile has, all in seconds.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import loads
import pyrometer

ENOUGH = 2.0  # seconds of CPU; one run of a load may be more


def report() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        pyrometer.export(path)
        whole: dict[str, Any] = json.loads(path.read_text())
    return whole


def main() -> None:
    load = loads.load(sys.argv[1])
    before = time.process_time()
    pyrometer.start()
    while time.process_time() < before + ENOUGH:
        load()
    pyrometer.stop()
    cpu = time.process_time() - before
    whole = report()
    missing = sum(one["self_s"] for one in whole["functions"] if one["name"] == "(unsampled)")
    answer = {"cpu": cpu, "said": whole["cpu_s"], "sampled": whole["sampled_s"]}
    print(json.dumps({**answer, "unsampled": missing}))


main()
