# SPDX-License-Identifier: Apache-2.0
"""Functions with names, files and modules that are hard to write down: `odd_names.py FOLDER`."""

import sys
import time
from types import FunctionType

import pyrometer

NAMES = [
    "semi;colon",
    "line\nfeed",
    "car\rriage\ttab",
    "sur\udc80rogate",
    "nul\0byte",
    "long" * 2_500,
    "größe",
    "\u202etfel",
    "line\u2028separator",
    "looks like (a.py:1)",
    "",
    " ",
    '"quoted"\\',
    "<b>&amp;</b>",
]
FILES = [
    "/x/semi;colon.py",
    "/x/line\nfeed.py",
    "/x/\udcff\udcfe.py",  # what os.fsdecode makes of bytes that are not UTF-8
    "/x/nul\0byte.py",
    "/" + "long" * 2_500 + ".py",
    "",
    "<string>",
    "/x/größe.py",
]
# globals()["__name__"]; None: there is none
MODULES: list[object] = ["plain", None, 7, "sur\udc81rogate", "", "semi;colon\nline", "nul\0byte"]


def burn() -> None:
    end = time.thread_time() + 0.03
    while time.thread_time() < end:
        sum(range(100))


def template() -> None:
    burn()


def make(number: int) -> FunctionType:
    name = NAMES[number % len(NAMES)]
    code = template.__code__.replace(
        co_name=name,
        co_qualname=name,
        co_filename=FILES[number % len(FILES)],
        co_firstlineno=1000 + number,
    )
    names: dict[str, object] = {"burn": burn, "__builtins__": __builtins__}
    module = MODULES[number % len(MODULES)]
    if module is not None:
        names["__name__"] = module
    return FunctionType(code, names)


pyrometer.start(rate=250)
for number in range(len(NAMES)):
    make(number)()
pyrometer.stop()
for ending in ("json", "collapsed", "sparkprofile", "pb.gz"):
    pyrometer.export(f"{sys.argv[1]}/profile.{ending}")
