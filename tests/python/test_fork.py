# SPDX-License-Identifier: Apache-2.0
"""Forks beside threads of Python, in an armed program: no child hangs or crashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Python
from service import armed, write
from test_free_threaded import has_gil

CHILD_SECONDS = 20  # one that hangs is ended by then, and told

# `work` is nearly all calls: a fork mostly finds the other threads in our callbacks, or near.
WORK = """
import json, os, signal
def leaf(): pass
def call(depth):
    if depth: call(depth - 1)
    leaf()
def work(times=20):
    for _ in range(times): call(20)
statuses = []
def reap(flags):
    while True:
        try: pid, status = os.waitpid(-1, flags)
        except ChildProcessError: return
        if pid == 0: return
        statuses.append(status)
def be_child():
    signal.alarm(%d)
    work(200)
    os._exit(0)
def tell():
    reap(0)
    print(json.dumps({"children": len(statuses), "bad": [s for s in statuses if s]}))
"""

BESIDE_THREADS = """
over = False
def burn():
    while not over: work()
threads = [threading.Thread(target=burn) for _ in range(3)]
for thread in threads: thread.start()
sys.setswitchinterval(0.0005)
for _ in range(300):
    if os.fork() == 0: be_child()
    reap(os.WNOHANG)
over = True
for thread in threads: thread.join()
tell()
"""


def test_beside_threads(python: Python, tmp_path: Path) -> None:
    if not has_gil(python):
        pytest.skip(
            "CPython's own: a fork without a GIL while another thread is in sys.monitoring "
            "leaves the child's stop-the-world lock held"
        )
    path = write(tmp_path, WORK % CHILD_SECONDS + BESIDE_THREADS)
    done = python.run("-W", "ignore", path, env=armed(every=0.5))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"children": 300, "bad": []}
