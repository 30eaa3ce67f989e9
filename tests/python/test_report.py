# SPDX-License-Identifier: Apache-2.0
"""The log report, armed by one environment variable: what burns, until the last second."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import rows
from conftest import Python
from service import armed, serve, write


def test_the_hot_function_comes_first(python: Python, tmp_path: Path) -> None:
    name = "worker-with-a-name-longer-than-comm"
    reports = serve(
        python,
        tmp_path,
        f"threading.Thread(target=serve, args=(3.2,), name={name!r}).start()\nserve(3.2)\n",
    )
    assert [report.window for report in reports] == list(range(1, len(reports) + 1))
    assert len(reports) >= 3
    for report in reports:
        assert report.functions[0][0].startswith("__main__.hot (")
        assert set(report.threads) >= {name, "MainThread"}
        assert sum(report.threads.values()) == pytest.approx(report.cores, abs=0.06)
        for _, tottime, cumtime, _ in report.functions:
            # Never more than the kernel says was used, as far as the rounded figures tell.
            assert tottime <= cumtime <= (report.cores + 0.005) * (report.seconds + 0.05)
        assert int(report.functions[0][3].lstrip("~")) > 100


def test_an_interval_holds_nothing_else(python: Python, tmp_path: Path) -> None:
    reports = serve(python, tmp_path, "def early(): serve(1.5)\nearly()\nserve(1.7)\n", top=50)
    first, last = reports[0], reports[-1]
    assert first.functions[0][2] > 0.5 * first.cores * first.seconds
    assert [calls for name, _, _, calls in last.functions if "early" in name] == []
    busy = sum(report.cores * report.seconds for report in reports)
    assert busy <= sum(report.seconds for report in reports) * 1.02


def test_an_idle_process_says_so(python: Python, tmp_path: Path) -> None:
    reports = serve(python, tmp_path, "time.sleep(2.5)\n")
    assert [report.idle for report in reports[1:]] == [True] * (len(reports) - 1)
    assert len(reports) >= 2
    assert not reports[-1].threads
    assert not reports[-1].functions


@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), 9)",
        "os.abort()",
        "os._exit(0)",
        "import ctypes; ctypes.string_at(1)",
    ],
)
def test_reports_outlive_the_process(python: Python, tmp_path: Path, end: str) -> None:
    program = write(
        tmp_path,
        "import os\n"
        "threading.Thread(target=serve, args=(60,), daemon=True).start()\n"
        f"serve(3.5)\n{end}\n",
    )
    done = python.run(program, env=armed(every=1, top=5))
    assert done.returncode != 0 or "_exit" in end
    reports = rows.read(done.stderr)
    assert [report.window for report in reports][:3] == [1, 2, 3]
    for report in reports[:3]:
        assert report.functions[0][0].startswith("__main__.hot (")


def test_a_thread_that_keeps_the_gil(python: Python, tmp_path: Path) -> None:
    source, library = tmp_path / "hold.c", tmp_path / "libhold.so"
    source.write_text(
        "#include <time.h>\n"
        "double keep_gil(double s) { volatile double v = 1; struct timespec t;\n"
        "  do { for (int i = 0; i < 20000; i++) v = v * 1.0000001 + 1e-9;\n"
        "       clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);\n"
        "  } while (t.tv_sec + t.tv_nsec / 1e9 < s); return v; }\n"
    )
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    reports = serve(
        python,
        tmp_path,
        "import ctypes\n"
        f"library = ctypes.PyDLL({str(library)!r})\n"
        "library.keep_gil.argtypes = [ctypes.c_double]\n"
        "library.keep_gil(3.6)\n",
    )
    assert len(reports) >= 3
    assert reports[1].functions[0][0] == "libhold.so!keep_gil"
    assert reports[2].functions[0][0] == "libhold.so!keep_gil"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_report_for_themselves(python: Python, tmp_path: Path, method: str) -> None:
    program = write(
        tmp_path,
        "import multiprocessing, os\n"
        "def child(): serve(2.4)\n"
        "def parent_only(seconds): serve(seconds)\n"
        "if __name__ == '__main__':\n"
        "    parent_only(1.2)\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    processes = [context.Process(target=child) for _ in range(2)]\n"
        "    for process in processes: process.start()\n"
        "    print(os.getpid(), *[process.pid for process in processes], flush=True)\n"
        "    for process in processes: process.join()\n",
    )
    done = python.run(program, env=armed(every=1, top=10))
    assert done.returncode == 0, done.stderr
    _, *children = map(int, done.stdout.split())
    reports = rows.read(done.stderr)
    for pid in children:
        mine = [report for report in reports if report.pid == pid]
        assert mine, done.stderr
        assert [report.window for report in mine] == list(range(1, len(mine) + 1))
        busiest = max(mine, key=lambda report: report.cores)
        assert ".hot (" in busiest.functions[0][0]
        names = [name for report in mine for name, *_ in report.functions]
        assert not any("parent_only" in name for name in names)


def test_children_can_be_left_alone(python: Python, tmp_path: Path) -> None:
    program = write(
        tmp_path,
        "import os, subprocess\n"
        "serve(1.2)\n"
        "if os.environ.get('PYROMETER'): print('inherited')\n"
        "if os.fork() == 0:\n"
        "    serve(1.5)\n"
        "    os._exit(0)\n"
        "os.wait()\n",
    )
    done = python.run(program, env=armed(every=1, children=False))
    assert done.stdout == ""
    assert len({report.pid for report in rows.read(done.stderr)}) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"every": 0}', '"every" must be: seconds between reports, 0.1 to 86400'),
        ('{"evry": 1}', 'the key "evry" is not known; there are every, top, rate'),
        ('{"top": "all"}', '"top" must be: functions in a report, 1 to 1000'),
        ('{"rate": 251}', '"rate" must be: samples per second of CPU, 1 to 250'),
        ('{"every": 1', "not JSON: line 1, column 11"),
        ('["every"]', "must be a JSON object"),
        ('{"every": 1, "every": 2}', "duplicate"),
        ('{"mode": "wall"}', '"wall" is not there yet'),
        ("\\udcff", "not JSON"),
    ],
)
def test_bad_settings_are_one_line(python: Python, text: str, line: str) -> None:
    environment = {**os.environ, "PYROMETER": text}
    done = python.run("-c", "print('served')", env=environment)
    assert (done.returncode, done.stdout) == (0, "served\n")
    assert done.stderr.count("\n") == 1
    assert line in done.stderr


def test_unset_or_empty_starts_nothing(python: Python) -> None:
    show = "import sys; print([name for name in sys.modules if 'pyrometer' in name])"
    for value in ({}, {"PYROMETER": ""}):
        environment = {**os.environ, **value}
        done = python.run("-c", show, env=environment)
        assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_reader_that_does_not_read(python: Python, tmp_path: Path) -> None:
    """stderr is a full pipe: the service is not held up, and its rows are counted as dropped."""
    program = write(tmp_path, "start = time.time()\nserve(2.5)\nprint(time.time() - start)\n")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while os.write(writer, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(writer, True)
    try:
        done = subprocess.run(
            [python.path, program],
            env=armed(every=0.3),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=writer,
            timeout=60,
            check=True,
        )
        assert float(done.stdout) < 4
    finally:
        os.close(reader)
        os.close(writer)


def test_json_rows_survive_odd_names(python: Python, tmp_path: Path) -> None:
    program = write(
        tmp_path,
        "text = 'def burn():\\n end = time.time() + 2.4\\n'\n"
        "text += ' while time.time() < end: pass\\nburn()'\n"
        "code = compile(text, 'a\\n\"b\\udcff.py', 'exec')\n"
        "threading.current_thread().name = 'quote\" and\\nbreak'\n"
        "exec(code)\n",
    )
    done = python.run(program, env=armed(every=1, format="json"))
    assert done.returncode == 0, done.stderr
    objects = [json.loads(line) for line in done.stderr.splitlines()]
    assert {row["profile"] for row in objects} == {"process", "thread", "function"}
    assert any("burn" in row["name"] for row in objects if row["profile"] == "function")
    text = python.run(program, env=armed(every=1))
    assert rows.read(text.stderr)


def test_switched_by_a_signal(python: Python, tmp_path: Path) -> None:
    program = write(
        tmp_path,
        "import os, signal\n"
        "serve(1.3)\n"
        "os.kill(os.getpid(), signal.SIGUSR2)\n"
        "serve(2.2)\n"
        "os.kill(os.getpid(), signal.SIGUSR2)\n"
        "serve(2.4)\n",
    )
    done = python.run(program, env=armed(every=1, signal="USR2"))
    assert done.returncode == 0, done.stderr
    # Each start counts from one; nothing comes while it is off.
    windows = [report.window for report in rows.read(done.stderr)]
    assert windows in ([1, 1], [1, 1, 2])
