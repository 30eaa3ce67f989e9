# SPDX-License-Identifier: Apache-2.0
"""Another tool looks at tool_load: `tool_beside.py TOOL [PROFILE]`, with us beside it or without.

Prints what the tool found; PROFILE is where our own profile goes.
"""

import os
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import tool_load

ROUNDS = 200


def cprofile() -> object:
    import cProfile

    profile = cProfile.Profile()
    profile.enable()
    result = tool_load.work(ROUNDS)
    profile.disable()
    profile.create_stats()
    stats: dict[Any, Any] = profile.stats  # type: ignore[attr-defined]
    rows = {
        (Path(file).name, line, name, calls, inner)
        for (file, line, name), (inner, calls, *_) in stats.items()
    }
    return result, sorted(rows)


def hook(setter: Any) -> object:
    seen: Counter[tuple[str, str, int]] = Counter()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        line = frame.f_lineno if event == "line" else 0
        seen[(frame.f_code.co_name, event, line)] += 1
        return trace

    setter(trace)
    result = tool_load.work(ROUNDS)
    setter(None)
    return result, sorted(seen.items())


def coverage(core: str) -> object:
    os.environ["COVERAGE_CORE"] = core
    from coverage import Coverage

    measured = Coverage(data_file=None, include=["*/tool_load.py"])
    measured.start()
    result = tool_load.work(ROUNDS)
    measured.stop()
    data = measured.get_data()
    return result, [(Path(f).name, sorted(data.lines(f) or [])) for f in data.measured_files()]


def look(tool: str) -> object:
    if tool == "cprofile":
        return cprofile()
    if tool.startswith("coverage-"):
        return coverage(tool.removeprefix("coverage-"))
    return hook(getattr(sys, tool))


def main() -> None:
    tool_load.work(3)  # what is made once is made now
    profile = sys.argv[2] if len(sys.argv) > 2 else None
    if profile is not None:
        import pyrometer

        pyrometer.start(rate=250)
    found = look(sys.argv[1])
    if profile is not None:
        pyrometer.stop()
        pyrometer.export(profile)
    print(found)


main()
