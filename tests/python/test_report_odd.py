# SPDX-License-Identifier: Apache-2.0
"""Names that break lines, programs that speak on stdout, ends without a farewell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import rows
from conftest import Python
from service import armed, write

# Quotes, line breaks of every kind, terminal escapes, bytes that are no UTF-8, a very long name.
ODD = """
odd = 'q"u\\\\o\\'te\\nline\\rback\\x1b[31mred\\x07\\x85\\u2028\\u2029\\udcff\\ud800<&'
def renamed(code, **changes): return code.replace(**changes)
def burn(seconds=0.8):
    end = time.time() + seconds
    while time.time() < end: hot(1000)
def run(name, file):
    burn.__code__ = renamed(burn.__code__, co_name=name, co_qualname=name, co_filename=file)
    burn()
def odd_thread():
    threading.current_thread().name = odd
    run(odd, odd + '.py')
    run('long' * 3000, 'file' * 3000)
    run('wide\\u00e9' * 900, odd)
thread = threading.Thread(target=odd_thread)
thread.start(); thread.join()
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_odd_names_stay_one_line(python: Python, tmp_path: Path, form: str) -> None:
    program = write(tmp_path, ODD)
    done = subprocess.run(
        [python.path, program],
        env=armed(every=0.5, format=form, top=50),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    text = done.stderr.decode()  # strictly UTF-8
    lines = text.split("\n")[:-1]
    assert lines == text.splitlines()
    assert not [line for line in lines if not line.isprintable()]
    assert max(map(len, lines)) <= 4096
    if form == "json":
        found = [json.loads(line) for line in lines]
        assert {row["profile"] for row in found} == {"process", "thread", "function"}
        names = [row["name"] for row in found if row["profile"] != "process"]
    else:
        names = [name for report in rows.read(text) for name in report.threads]
        names += [name for report in rows.read(text) for name, *_ in report.functions]
    assert any("line back" in name and "red" in name for name in names)


RPC = """
import json
def answer(line):
    request = json.loads(line)
    hot(200_000)
    body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": request["id"] ** 2})
    sys.stdout.buffer.write(f"Content-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
    sys.stdout.buffer.flush()
for line in sys.stdin: answer(line)
"""


@pytest.mark.parametrize("log", ["stderr", "logging"])
def test_json_rpc_on_stdout_is_untouched(python: Python, tmp_path: Path, log: str) -> None:
    program = write(tmp_path, RPC)
    requests = "".join(json.dumps({"jsonrpc": "2.0", "id": i}) + "\n" for i in range(60))
    plain = {**os.environ, "PYROMETER": ""}
    settings = armed(every=0.2, log=log)
    outputs = [
        subprocess.run(
            [python.path, program],
            input=requests.encode(),
            env=env,
            capture_output=True,
            timeout=60,
            check=True,
        )
        for env in (plain, settings)
    ]
    assert outputs[0].stdout == outputs[1].stdout
    assert outputs[0].stdout.count(b"jsonrpc") == 60
    assert b"[profile" in outputs[1].stderr


def whole_reports(text: str) -> None:
    reports = rows.read(text)
    assert [report.window for report in reports][:3] == [1, 2, 3]
    for report in reports[:3]:
        assert any(".hot (" in name for name, *_ in report.functions[:3]), report


# Memory ends at 3.5 s, while two threads work: by MemoryError, or by the C library's abort.
SHORT = """
import os, resource
threading.Thread(target=serve, args=(60,), daemon=True).start()
serve(3.5)
size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20),) * 2)
kept = []
try:
    while True: kept.append(bytearray(1 << 20))
except MemoryError:
    %s
"""


@pytest.mark.parametrize("end", ["os.abort()", "os._exit(1)", "os.kill(os.getpid(), 9)"])
def test_reports_outlive_a_lack_of_memory(python: Python, tmp_path: Path, end: str) -> None:
    done = python.run(write(tmp_path, SHORT % end), env=armed(every=1, top=5))
    assert done.returncode != 0
    whole_reports(done.stderr)


def test_reports_outlive_a_kill_from_outside(python: Python, tmp_path: Path) -> None:
    program = write(tmp_path, "import os\nprint(os.getpid(), flush=True)\nserve(60)\n")
    process = subprocess.Popen(
        [python.path, program],
        env=armed(every=1, top=5),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    pid = int(process.stdout.readline())
    time.sleep(3.5)
    os.kill(pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    whole_reports(errors)
