# SPDX-License-Identifier: Apache-2.0
"""What the functions of a load used: functions.py LOAD SECONDS [BUDGET]. One line of JSON.

`functions` are [place, self, error] in seconds, those that are the program's own; SECONDS are of
CPU. Without BUDGET all events are on.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import loads
import pyrometer

NOT_THE_PROGRAM = ("[pyrometer]", "(unsampled)")


def main() -> None:
    load = loads.load(sys.argv[1])
    options = {"budget": float(sys.argv[3])} if len(sys.argv) > 3 else {}
    load()
    pyrometer.start(**options)
    end = time.process_time() + float(sys.argv[2])
    while time.process_time() < end:
        load()
    pyrometer.stop()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        pyrometer.export(path)
        report = json.loads(path.read_text())
    functions = [
        (
            f"{one['name']} {one.get('file', '')}:{one.get('line', '')}",
            one["self_s"],
            one.get("self_error_s", 0.0),
        )
        for one in report["functions"]
        if one["name"] not in NOT_THE_PROGRAM
    ]
    print(json.dumps({"functions": functions}))


main()
