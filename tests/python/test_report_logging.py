# SPDX-License-Identifier: Apache-2.0
"""`"log": "logging"`: rows as log records, each once, and the program none the wiser."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import rows
from conftest import Python
from service import armed, write

# Every record is a line on standard output: level, message, fields.
TELL = """
import json, logging, os
class Tell(logging.Handler):
    def emit(self, record):
        fields = getattr(record, "pyrometer", None)
        line = json.dumps([record.levelname, record.getMessage(), fields])
        os.write(1, (line + "\\n").encode())
"""
CONFIGURED = TELL + "logging.basicConfig(level=logging.INFO, handlers=[Tell()])\n"

Records = list[tuple[str, str, Any]]


def run(
    python: Python, folder: Path, program: str, **settings: Any
) -> subprocess.CompletedProcess[str]:
    settings = {"every": 1, "top": 5, "log": "logging", **settings}
    done = python.run(write(folder, program), env=armed(**settings), timeout=60)
    assert done.returncode == 0, done.stderr
    return done


def records(done: subprocess.CompletedProcess[str]) -> Records:
    """What came by way of logging from us."""
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return [tuple(line) for line in lines if line[2] is not None]


def logged(done: subprocess.CompletedProcess[str]) -> str:
    return "\n".join(message for _, message, _ in records(done))


def heads(text: str) -> list[tuple[int, int]]:
    """Pid and window of each report, where its rows may have gone two ways."""
    found = map(rows.PROCESS.fullmatch, text.splitlines())
    return [(int(match["pid"]), int(match["window"])) for match in found if match]


def test_a_record_a_row(python: Python, tmp_path: Path) -> None:
    done = run(python, tmp_path, CONFIGURED + "serve(3.4)\n")
    assert done.stderr == ""
    assert {level for level, _, _ in records(done)} == {"INFO"}
    reports = rows.read(logged(done))
    assert [report.window for report in reports] == [1, 2, 3]
    for report in reports:
        assert report.functions[0][0].startswith("__main__.hot (")
    kinds = Counter(fields["profile"] for _, _, fields in records(done))
    assert kinds["process"] == kinds["active"] == 3
    assert kinds["function"] == sum(len(report.functions) for report in reports)
    for _, message, fields in records(done):
        if fields["profile"] == "function":
            assert f"tottime={fields['tottime']:.3f}s" in message
            assert type(fields["line"]) is int


def test_json_messages_are_the_fields(python: Python, tmp_path: Path) -> None:
    done = run(python, tmp_path, CONFIGURED + "serve(2.3)\n", format="json")
    assert done.stderr == ""
    found = records(done)
    assert {fields["profile"] for _, _, fields in found} == {"process", "thread", "function"}
    for _, message, fields in found:
        row = json.loads(message)
        assert row.keys() == fields.keys()
        assert (row["profile"], row["pid"]) == (fields["profile"], fields["pid"])


def test_nothing_is_imported(python: Python, tmp_path: Path) -> None:
    """Without logging there are no handlers: rows go to standard error and say why."""
    program = "before = {*sys.modules}\nserve(2.3)\nprint({*sys.modules} - before)\n"
    done = run(python, tmp_path, program)
    assert done.stdout == "set()\n"
    assert len(rows.read(rows.marked(done.stderr, "unhandled"))) == 2
    assert all(line.startswith("[profile unhandled] ") for line in done.stderr.splitlines())
    started = python.run(
        "-c", "import sys; print('logging' in sys.modules)", env=armed(log="logging")
    )
    assert started.stdout == "False\n"


def test_a_level_that_drops_them_is_told(python: Python, tmp_path: Path) -> None:
    done = run(python, tmp_path, TELL + "logging.basicConfig(handlers=[Tell()])\nserve(3.3)\n")
    assert records(done) == []
    assert done.stderr.count("\n") == 1
    assert "its level is above INFO" in done.stderr


def test_a_main_thread_that_waits(python: Python, tmp_path: Path) -> None:
    """What Python does not take within an interval goes to stderr; each row once in all."""
    program = (
        CONFIGURED
        + "thread = threading.Thread(target=serve, args=(3.5,))\n"
        + "thread.start()\nthread.join()\nserve(1.2)\n"
    )
    done = run(python, tmp_path, program)
    late, timely = rows.marked(done.stderr, "waited"), logged(done)
    windows = [window for _, window in heads(late) + heads(timely)]
    assert sorted(windows) == list(range(1, len(windows) + 1))
    assert heads(late)[0][1] == 1
    assert heads(timely)
    assert len(windows) >= 4
    assert rows.read(late)[0].functions[0][0].startswith("__main__.hot (")


def test_in_the_middle_of_the_programs_own_logging(python: Python, tmp_path: Path) -> None:
    """Locks that are not reentrant: a queue's, a handler's and a stream's own."""
    program = (
        CONFIGURED
        + "import logging.handlers, queue\n"
        + "class Stream:\n"
        + "    lock = threading.Lock()\n"
        + "    def write(self, text):\n"
        + "        with self.lock: sum(range(200))\n"
        + "    def flush(self): pass\n"
        + "class Locked(logging.Handler):\n"
        + "    own = threading.Lock()\n"
        + "    def put(self):\n"
        + "        with self.own: sum(range(200))\n"
        + "    def emit(self, record): self.put()\n"
        + "things = queue.Queue()\n"
        + "locked, stream = Locked(), Stream()\n"
        + "queued = logging.handlers.QueueHandler(things)\n"
        + "for handler in (queued, locked, logging.StreamHandler(stream)):\n"
        + "    logging.getLogger().addHandler(handler)\n"
        + "logging.getLogger('app').propagate = False\n"
        + "logging.getLogger('app').addHandler(queued)\n"
        + "end = time.time() + 4\n"
        + "while time.time() < end:\n"
        + "    for _ in range(50):\n"
        + "        logging.getLogger('app').info('own')\n"
        + "        things.get(); things.put(1); things.get()\n"
        + "        locked.put(); stream.write('')\n"
        + "    hot(20_000)\n"
    )
    # Rows that meet a busy logger are handed over at a later event: events must be on for that.
    done = run(python, tmp_path, program, every=0.3, budget="off")
    timely, late = heads(logged(done)), heads(rows.marked(done.stderr, "waited"))
    assert len(timely) >= 8, done.stderr
    windows = [window for _, window in timely + late]
    assert sorted(windows) == list(range(1, len(windows) + 1))


def test_what_a_handler_raises_stays_there(python: Python, tmp_path: Path) -> None:
    program = (
        TELL
        + "class Broken(Tell):\n"
        + "    def handle(self, record): raise ValueError('broken')\n"
        + "logging.basicConfig(level=logging.INFO, handlers=[Broken()])\n"
        + "try:\n"
        + "    raise KeyError\n"
        + "except KeyError as error:\n"
        + "    serve(2.4)\n"
        + "    print(sys.exc_info()[1] is error, error.__context__)\n"
    )
    done = run(python, tmp_path, program)
    assert done.stdout == "True None\n"
    assert len(rows.read(rows.marked(done.stderr, "failed"))) == 2
    assert all(line.startswith("[profile failed] ") for line in done.stderr.splitlines())


def test_what_a_signal_raises_reaches_the_program(python: Python, tmp_path: Path) -> None:
    """A time limit of the program's that runs out while its handler has our row."""
    program = (
        TELL
        + "import signal\n"
        + "class Limit(Exception): pass\n"
        + "def stop(number, frame): raise Limit\n"
        + "signal.signal(signal.SIGALRM, stop)\n"
        + "class Slow(Tell):\n"
        + "    limit = 0.05\n"
        + "    def emit(self, record):\n"
        + "        signal.setitimer(signal.ITIMER_REAL, self.limit)\n"
        + "        self.limit = 0\n"
        + "        time.sleep(0.1)\n"
        + "logging.basicConfig(level=logging.INFO, handlers=[Slow()])\n"
        + "try:\n"
        + "    serve(5)\n"
        + "except Limit:\n"
        + "    print('limited')\n"
    )
    done = run(python, tmp_path, program)
    assert done.stdout == "limited\n"


def test_a_forked_child_has_none_of_its_parents_rows(python: Python, tmp_path: Path) -> None:
    """The fork comes from a thread, while rows wait for the main thread."""
    program = (
        CONFIGURED
        + "def child():\n"
        + "    serve(1.6)\n"
        + "    if os.fork() == 0:\n"
        + "        serve(2.4)\n"
        + "        os._exit(0)\n"
        + "    os.wait()\n"
        + "thread = threading.Thread(target=child)\n"
        + "thread.start()\ntime.sleep(1.8)\n"
        + "thread.join()\nserve(0.2)\nprint(os.getpid())\n"
    )
    done = run(python, tmp_path, program)
    parent = int(done.stdout.splitlines()[-1])
    seen = Counter(heads(logged(done)) + heads(rows.marked(done.stderr, "waited")))
    assert {pid for pid, _ in seen} - {parent}
    assert set(seen.values()) == {1}
    assert (parent, 1) in seen


def test_the_handlers_work_is_ours(python: Python, tmp_path: Path) -> None:
    program = (
        TELL
        + "def burn_in_handler(): hot(2_000_000)\n"
        + "class Heavy(Tell):\n"
        + "    def emit(self, record):\n"
        + "        if record.pyrometer['profile'] == 'process': burn_in_handler()\n"
        + "        super().emit(record)\n"
        + "logging.basicConfig(level=logging.INFO, handlers=[Heavy()])\n"
        + "serve(3.4)\n"
    )
    done = run(python, tmp_path, program, top=50)
    second = next(fields for _, _, fields in records(done) if fields.get("window") == 2)
    assert second["overhead_pct"] > 3
    names = [name for report in rows.read(logged(done))[1:] for name, *_ in report.functions]
    assert not [name for name in names if "burn_in_handler" in name or "emit" in name]
