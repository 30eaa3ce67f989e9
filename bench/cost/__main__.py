# SPDX-License-Identifier: Apache-2.0
"""What the profiler costs, beside its peers: python bench/cost [--python NAME]... [TOPIC]...

Needs build/wheel (make wheel). Without topics: all of them.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
import time
from pathlib import Path

import interpreters

# The topics, and the interpreters that each is measured on unless told otherwise.
TOPICS = {
    "overhead": ("3.12", "3.13", "3.15"),
    "budget": ("3.12", "3.13"),
    "agreement": ("3.13",),
    "truth": ("3.12", "3.13", "3.15"),
    "accuracy": ("3.13", "3.15"),
    "scaling": ("3.13t",),
    "threads": ("3.12", "3.13"),
    "growth": ("3.13",),
}
ALONE = {"quick": ("3.13",)}  # only when it is asked for


def machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    return (
        f"{model}, {platform.system()} {platform.release()}, {time.strftime('%F', time.gmtime())}"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/cost/run.sh")
    parser.add_argument("--python", action="append", metavar="NAME", help="3.12, 3.13t, ...")
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=", ".join({**TOPICS, **ALONE}))
    return parser.parse_args()


def main() -> int:
    options, status = arguments(), 0
    for topic in options.topics or TOPICS:
        names = options.python or list({**TOPICS, **ALONE}[topic])
        pythons = interpreters.find(names)
        interpreters.set_up(pythons, with_peers=topic not in ALONE)
        print(f"\n{topic}: {machine()}", flush=True)
        status |= importlib.import_module(topic).main(pythons)
    return status


if __name__ == "__main__":
    sys.exit(main())
