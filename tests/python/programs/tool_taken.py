# SPDX-License-Identifier: Apache-2.0
"""All tool ids are somebody else's when we start: `tool_taken.py api|run FOLDER`."""

import json
import os
import sys
import time

for number in range(6):
    sys.monitoring.use_tool_id(number, f"tenant-{number}")


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


def api(folder: str) -> None:
    import pyrometer

    pyrometer.start(rate=250)
    burn(0.4)
    pyrometer.stop()
    pyrometer.export(f"{folder}/profile.json")
    pyrometer.export(f"{folder}/profile.collapsed")


def run(folder: str) -> None:
    """As `pyrometer run` starts a program."""
    from pyrometer import _arm

    outputs = [f"{folder}/profile.json", f"{folder}/profile.collapsed"]
    request = {"pid": os.getpid(), "outputs": outputs, "rate": 250, "top": 5, "quiet": False}
    os.environ[_arm.VARIABLE] = json.dumps(request)
    _arm.arm(set(sys.modules))
    burn(0.4)


globals()[sys.argv[1]](sys.argv[2])
print([sys.monitoring.get_tool(number) for number in range(6)])
