# SPDX-License-Identifier: Apache-2.0
"""Starting under PYROMETER: what it costs those who end at once, and who begins when."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import rows
from conftest import ROOT, Python
from service import armed, serve, write

PARENT = """
import json, os, subprocess, sys, time
plain = {name: value for name, value in os.environ.items() if name != "PYROMETER"}
taken = {True: [], False: []}
for turn in range(400):
    armed = turn % 2 == 0
    start = time.perf_counter()
    child = [sys.executable, "-c", "pass"]
    subprocess.run(child, check=True, env=os.environ if armed else plain)
    taken[armed].append(time.perf_counter() - start)
print(json.dumps([os.getpid(), min(taken[True]) - min(taken[False])]))
"""

CHECK = """
import sys, time
lines = open(sys.argv[1]).read().splitlines()
def site(sitedir):
    start = time.perf_counter()
    for line in lines:
        exec(line)
    return time.perf_counter() - start
before = {*sys.modules}
print(min(site("/nowhere") for _ in range(50)), {*sys.modules} - before)
"""


def test_short_children_are_silent_and_cheap(python: Python, tmp_path: Path) -> None:
    """Half of the 400 are armed. bench/startup has the figures; here only what is gross fails."""
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    done = python.run(program, env=armed(every=1))
    assert done.returncode == 0, done.stderr
    pid, added = json.loads(done.stdout)
    assert {report.pid for report in rows.read(done.stderr)} == {pid}
    assert added < 0.010


def test_the_check_of_an_unset_variable(python: Python) -> None:
    environment = {name: value for name, value in os.environ.items() if "PYROMETER" not in name}
    done = python.run("-c", CHECK, ROOT / "python/pyrometer.pth", env=environment)
    seconds, _, modules = done.stdout.strip().partition(" ")
    assert float(seconds) < 0.001
    assert modules == "set()"


def test_nothing_is_left_in_modules(python: Python) -> None:
    show = "import sys, os; print(sorted(sys.modules), os.environ.get('PYROMETER'))"
    plain = {name: value for name, value in os.environ.items() if "PYROMETER" not in name}
    unarmed = python.run("-c", show, env=plain).stdout
    done = python.run("-c", show, env=armed(every=1))
    assert done.stdout == unarmed.replace("None", '{"every": 1}')
    assert done.stderr == ""


def test_a_main_thread_that_only_waits(python: Python, tmp_path: Path) -> None:
    """It never lets us into Python: that is done on another thread then."""
    reports = serve(
        python,
        tmp_path,
        "thread = threading.Thread(target=serve, args=(2.6,), name='worker')\n"
        "thread.start()\nthread.join()\n",
    )
    assert reports
    assert reports[-1].functions[0][0].startswith("__main__.hot (")
    assert set(reports[-1].threads) == {"worker"}
    assert int(reports[-1].functions[0][3].lstrip("~")) > 100


def test_forked_before_anything_has_begun(python: Python, tmp_path: Path) -> None:
    program = write(
        tmp_path,
        "import os, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "pid = os.fork()\n"
        "serve(2.6)\n"
        "if pid: print(pid); os.waitpid(pid, 0)\n",
    )
    done = python.run(program, env=armed(every=1))
    assert done.returncode == 0, done.stderr
    reports = rows.read(done.stderr)
    for pid in {report.pid for report in reports} | {int(done.stdout)}:
        mine = [report for report in reports if report.pid == pid]
        assert mine, done.stderr
        assert mine[0].functions[0][0].startswith("__main__.hot (")


def test_stopped_and_started_while_it_waits(python: Python, tmp_path: Path) -> None:
    done = python.run(
        write(
            tmp_path,
            "import pyrometer\n"
            "try: pyrometer.start()\n"
            "except RuntimeError as error: print(error)\n"
            "pyrometer.snapshot()\n"
            "pyrometer.stop()\n"
            "pyrometer.start()\n"
            "begin = time.process_time()\n"
            "serve(0.5)\n"
            "burnt = time.process_time() - begin\n"
            "state = pyrometer.snapshot()\n"
            "pyrometer.stop()\n"
            "print(state['state'], state['stored'] > 70 * burnt)\n",
        ),
        env=armed(every=1),
    )
    assert done.returncode == 0, done.stderr
    already, state = done.stdout.splitlines()
    assert already.startswith("the profiler is already running")
    assert state == "attributed True"


def test_the_start_file(python: Python, tmp_path: Path) -> None:
    """Where `site` reads no import lines, pyrometer_arm.start does the same, once."""
    if python.version in ("3.12", "3.13", "3.13t", "3.14"):
        pytest.skip(f"Python {python.version} reads no .start files")
    package = python.run("-c", "import pyrometer; print(pyrometer.__path__[0])").stdout.strip()
    shutil.copy(Path(package).with_name("pyrometer_arm.start"), tmp_path)
    program = write(
        tmp_path,
        "import site\n"
        f"sys.path.append({str(Path(package).parent)!r})\n"
        f"before = {{*sys.modules}}\n"
        f"site.addsitedir({str(tmp_path)!r})\n"
        "print([name for name in {*sys.modules} - before if 'pyrometer' in name])\n"
        "serve(1.7)\n",
    )
    for flags in ("-S",), ():
        done = python.run(*flags, program, env=armed(every=1))
        assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
        reports = rows.read(done.stderr)
        assert [report.window for report in reports] == [1]
        assert reports[0].functions[0][0].startswith("__main__.hot (")
    unset = {name: value for name, value in os.environ.items() if "PYROMETER" not in name}
    done = python.run("-S", program, env=unset)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
