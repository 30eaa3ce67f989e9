# SPDX-License-Identifier: Apache-2.0
"""Forks while sessions start and stop: `session_forks.py FORKS`.

Every child profiles itself and must find its own work alone. Prints one JSON object;
"faults" must be empty.
"""

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyrometer

forks = int(sys.argv[1])
CHILD_PATIENCE = 30.0
stop = False
faults = []


def parents_work() -> None:
    value = 0
    while not stop:
        value = parents_call(value)


def parents_call(value: int) -> int:
    return value + 1


def childs_work() -> None:
    end = time.process_time() + 0.05
    while time.process_time() < end:
        childs_call()


def childs_call() -> None:
    pass


def sessions() -> None:
    while not stop:
        try:
            pyrometer.start(rate=250)
        except RuntimeError:
            continue
        time.sleep(0.002)
        pyrometer.stop()


def child(path: Path) -> str:
    pyrometer.start(rate=250)
    childs_work()
    found = pyrometer.snapshot()
    if found["state"] != "attributed" or found["tool_id"] != 4:
        return f"{found['state']}: {found['reason']}, tool {found['tool_id']}"
    pyrometer.stop()
    pyrometer.export(path)
    found = pyrometer.snapshot()
    if found["signals"] != found["stored"] + sum(found["lost"].values()):
        return f"{found['signals']} signals, {found['stored']} stored, {found['lost']}"
    stacks = path.read_text()
    if "childs_work" not in stacks:
        return "the child's work is not in its profile"
    if "parents_" in stacks:
        return "the parent's work is in the child's profile"
    return ""


def wait_for(pid: int) -> int:
    end = time.monotonic() + CHILD_PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return -1


def fork(path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        why = "it raised"
        try:
            why = child(path)
        finally:
            if why:
                os.write(2, f"child: {why}\n".encode())
            os._exit(1 if why else 0)
    status = wait_for(pid)
    if status != 0:
        faults.append(f"a child ended with {status}")


pyrometer.start()
pyrometer.stop()
threads = [threading.Thread(target=parents_work) for _ in range(2)]
threads += [threading.Thread(target=sessions) for _ in range(2)]
for thread in threads:
    thread.start()
with tempfile.TemporaryDirectory() as folder:
    for _ in range(forks):
        fork(Path(folder, "child.collapsed"))
stop = True
for thread in threads:
    thread.join()
print(json.dumps({"forks": forks, "faults": faults}))
