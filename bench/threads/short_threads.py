# SPDX-License-Identifier: Apache-2.0
"""How much of the CPU of short-lived threads is sampled. Usage: short_threads.py PYROMETER

2 s of CPU in threads of one length, one after another; a line for each length and rate.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import threading, time
SECONDS = {ms} / 1000
def burn():
    end = time.thread_time() + SECONDS
    while time.thread_time() < end: pass
for _ in range(int(2 / SECONDS)):
    thread = threading.Thread(target=burn)
    thread.start()
    thread.join()
"""


def measure(pyrometer: str, ms: float, rate: int, folder: Path) -> str:
    program, report = folder / "program.py", folder / "report.json"
    program.write_text(PROGRAM.format(ms=ms))
    command = [pyrometer, "run", "--quiet", "--rate", str(rate), "-o", str(report), str(program)]
    subprocess.run(command, check=True)
    summary = json.loads(report.read_text())
    sampled, cpu = summary["sampled_s"], summary["cpu_s"]
    samples = summary["diagnostics"]["stored"]
    return f"{ms:6} {rate:5} {cpu:7.2f} {sampled:9.2f} {sampled / cpu:7.0%} {samples:8}"


def main() -> None:
    print("    ms    Hz   CPU s sampled s   share  samples")
    with tempfile.TemporaryDirectory() as folder:
        for ms in (0.5, 2, 5, 10, 20):
            for rate in (100, 250):
                print(measure(sys.argv[1], ms, rate, Path(folder)))


main()
