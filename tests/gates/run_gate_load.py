# SPDX-License-Identifier: Apache-2.0
"""For test_run_gate.py: a profiled load. Argument: the library."""

from __future__ import annotations

import ctypes
import json
import re
import sys
import threading
import time

RATE_HZ = 250
SECONDS = 1.5


class Options(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("rate_hz", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("max_threads", ctypes.c_uint32),
    )


def burn(deadline: float) -> None:
    """Allocates, sorts through callbacks, raises, yields: many paths for a signal to fall on."""
    text = json.dumps({str(i): [i, str(i)] for i in range(200)})
    while time.monotonic() < deadline:
        words = sorted(re.findall(r"\d+", text), key=lambda word: (len(word), word))
        total = sum(int(word) for word in words if word)
        try:
            json.loads(text[: total % len(text)])
        except ValueError:
            json.loads(text)


def main() -> int:
    library = ctypes.CDLL(sys.argv[1])
    options = Options(ctypes.sizeof(Options), RATE_HZ, 0, 0)
    status = library.pyrometer_start(ctypes.byref(options))
    if status != 0:
        print(f"pyrometer_start: {status}", file=sys.stderr)
        return 1
    deadline = time.monotonic() + SECONDS
    threads = [threading.Thread(target=burn, args=(deadline,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    burn(deadline)
    for thread in threads:
        thread.join()
    return 1 if library.pyrometer_stop() != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
