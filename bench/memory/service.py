# SPDX-License-Identifier: Apache-2.0
"""What profiling holds of a service's memory. Usage: service.py PYTHON...

Each PYTHON has the package and numpy. The service: 100 functions that call each other at
random on 4 threads, json, re, sorting, hashing; as it is, and with numpy imported. Private
memory of processes that do the same number of requests, profiled and not, and what of it
the unwind tables hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

REQUESTS = 400_000
SERVICE = """
import hashlib, json, random, re, sys, threading
exec(sys.argv[1])
WORK = ("json.loads(json.dumps({'a': list(range(30)), 'b': {'c': str(n)}}))",
        "re.sub(r'(a|b)+', 'z', 'aabbcc' * 10)",
        "sorted(range(60), key=lambda v: (v * 7919) % 61)",
        "hashlib.sha256(b'x' * 400).hexdigest()",
        "sum(v * v for v in range(60))")
text = ""
for i in range(100):
    first, second, third = ((i * 31 + step) % 100 for step in (7, 24, 41))
    text += f'''
def f{i}(n, depth, choose):
    result = {WORK[i % 5]}
    if depth:
        k = choose.random()
        return (f{first} if k < .8 else f{second} if k < .97 else f{third})(n, depth - 1, choose)
    return result
'''
exec(compile(text, "service.py", "exec"))
def work(seed):
    choose = random.Random(seed)
    for n in range(int(sys.argv[2]) // 4):
        globals()[f"f{choose.randrange(10)}"](n, choose.randrange(1, 8), choose)
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with open("/proc/self/smaps_rollup") as lines:
    held = sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))
facts = {}
if len(sys.argv) > 3:
    import pyrometer
    facts = pyrometer.snapshot()
print(json.dumps([held / 1e3, facts.get("unwind_tables", {}).get("bytes", 0) / 1e6,
                  facts.get("stored", 0)]))
"""


def run(python: str, imports: str, profiled: bool) -> list[float]:
    if profiled:
        imports += "\nimport pyrometer\npyrometer.start()"
    command = [python, "-c", SERVICE, imports, str(REQUESTS), *(["-"] if profiled else [])]
    variables = {name: value for name, value in os.environ.items() if name != "PYROMETER"}
    done = subprocess.run(command, check=True, env=variables, capture_output=True, text=True)
    figures: list[float] = json.loads(done.stdout)
    return figures


def main() -> None:
    for python in sys.argv[1:]:
        print(subprocess.check_output([python, "-VV"], text=True).strip())
        for name, imports in (("service", ""), ("with numpy", "import numpy")):
            plain, profiled = run(python, imports, False), run(python, imports, True)
            print(
                f"  {name:10} {plain[0]:6.1f} MB, profiled {profiled[0]:6.1f} MB:"
                f" {profiled[0] - plain[0]:5.1f} MB more, {profiled[1]:.1f} of it unwind tables;"
                f" {profiled[2]:.0f} samples"
            )


main()
