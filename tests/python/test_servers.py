# SPDX-License-Identifier: Apache-2.0
"""Prefork servers: each worker reports itself, the hot handler first; the master idles."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import rows
from conftest import Python

PROGRAMS = Path(__file__).with_name("programs")
WORKERS = 3

SERVERS = {
    "gunicorn": ["-m", "gunicorn", "-w", str(WORKERS), "-b", "127.0.0.1:{port}", "web_app:wsgi"],
    "gunicorn-preload": [
        *["-m", "gunicorn", "--preload", "-w", str(WORKERS)],
        *["-b", "127.0.0.1:{port}", "web_app:wsgi"],
    ],
    "uvicorn": [
        *["-m", "uvicorn", "--workers", str(WORKERS), "--log-level", "warning"],
        *["--port", "{port}", "web_app:asgi"],
    ],
}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def fetch(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection), contextlib.suppress(OSError):
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    return False


def load(port: int, seconds: float) -> None:
    """Four clients at once, so that all workers get their share."""
    end = time.monotonic() + seconds

    def client() -> None:
        while time.monotonic() < end:
            fetch(port)

    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()


@contextlib.contextmanager
def served(python: Python, server: str, log: Path) -> Iterator[tuple[int, int]]:
    """The port and the master's pid of a server that answers."""
    port = free_port()
    arguments = [part.format(port=port) for part in SERVERS[server]]
    environment = {**os.environ, "PYROMETER": json.dumps({"every": 1, "top": 5})}
    with log.open("wb") as stderr:
        master = subprocess.Popen(
            [python.path, *arguments],
            cwd=PROGRAMS,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        deadline = time.monotonic() + 30
        while not fetch(port):
            assert master.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield port, master.pid
    finally:
        master.send_signal(signal.SIGTERM)
        master.wait(30)


@pytest.mark.parametrize("server", SERVERS)
def test_each_worker_names_the_hot_handler(python: Python, tmp_path: Path, server: str) -> None:
    if python.run("-c", "import flask, gunicorn, uvicorn").returncode != 0:
        pytest.skip(f"the servers cannot be installed for Python {python.version}")
    log = tmp_path / "log"
    with served(python, server, log) as (port, master):
        load(port, 6)
        time.sleep(1.1)
    reports = rows.read(log.read_text(errors="replace"))
    hot = set()
    for pid in {report.pid for report in reports} - {master}:
        # Some interval may hold little but the start or the end of the worker.
        first = Counter(r.functions[0][0] for r in reports if r.pid == pid and r.functions)
        if first and first.most_common(1)[0][0].startswith("web_app.hot_handler ("):
            hot.add(pid)
    assert len(hot) == WORKERS, log.read_text()
    of_master = [report for report in reports if report.pid == master]
    assert sum(report.idle for report in of_master) >= 3, log.read_text()
    assert not any("hot_handler" in name for r in of_master for name, *_ in r.functions)
