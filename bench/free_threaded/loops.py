# SPDX-License-Identifier: Apache-2.0
"""Event-loop threads that burn about 60 % of a core each; prints /proc's account of them.

With --sample, a thread looks at sys._current_frames a hundred times a second meanwhile
and what it saw is printed too. (Beside Pyrometer: run it under PYROMETER='{"every": 2}'.)
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections import Counter

LOOPS, SECONDS, BUSY, PERIOD = 2, 6.0, 0.012, 0.020


def burn(seconds: float) -> int:
    end, total = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        for i in range(500):
            total += i * i
    return total


async def serve(end: float) -> None:
    while time.monotonic() < end:
        start = time.monotonic()
        burn(BUSY * 0.6)
        await asyncio.sleep(max(0.0, PERIOD * 0.6 - (time.monotonic() - start)))


def loop(end: float, account: dict[str, float]) -> None:
    asyncio.run(serve(end))
    account[threading.current_thread().name] = time.thread_time()


def look(end: float, seen: Counter[str]) -> None:
    own = threading.get_ident()
    while time.monotonic() < end:
        for ident, frame in sys._current_frames().items():
            if ident != own and ident != threading.main_thread().ident:
                seen[frame.f_code.co_qualname] += 1
        time.sleep(0.01)


def main() -> None:
    end, account, seen = time.monotonic() + SECONDS, dict[str, float](), Counter[str]()
    threads = [
        threading.Thread(target=loop, args=(end, account), name=f"loop-{i}") for i in range(LOOPS)
    ]
    if "--sample" in sys.argv:
        threads.append(threading.Thread(target=look, args=(end, seen), name="looks"))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"cpu_s": account, "seen": seen.most_common(5)}))


if __name__ == "__main__":
    main()
