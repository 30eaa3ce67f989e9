# SPDX-License-Identifier: Apache-2.0
"""A subinterpreter starts, reads and stops the profiler.

`sub_start.py shared|own held|free FOLDER`: whose GIL it has, and whether it holds it in a call.
"""

import sys
import threading
import time

import sub_interpreters

CODE = """
import ctypes, sys, time
sys.path[:] = {path!r}
import pyrometer
from pyrometer import _library
if {held}:
    # As a C host calls: with the GIL.
    _library.library()._calls = ctypes.PyDLL(_library.PATH)
def sub_burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))
_library.library()._calls.pyrometer_start(None) if {held} else pyrometer.start(rate=250)
sub_burn(0.2)
if not {held}:
    assert pyrometer.snapshot()['state'] == 'attributed'
    pyrometer.export({folder!r} + '/early.json')
    pyrometer.export({folder!r} + '/early.collapsed')
if {stop}:
    _library.library()._calls.pyrometer_stop()
"""


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


def guest(*, stop: bool) -> None:
    held, folder = sys.argv[2] == "held", sys.argv[3]
    code = CODE.format(path=sys.path, held=held, folder=folder, stop=stop)
    interpreter = sub_interpreters.create(shared_gil=sys.argv[1] == "shared")
    sub_interpreters.execute(interpreter, code)
    back()
    sub_interpreters.destroy(interpreter)


def back() -> None:
    burn(0.2)


def main() -> None:
    import pyrometer

    guest(stop=True)
    assert pyrometer.snapshot()["state"] == "attributed"
    # From another thread; started there, stopped here, when that interpreter is gone.
    thread = threading.Thread(target=guest, kwargs={"stop": False}, name="guest")
    thread.start()
    thread.join()
    burn(0.1)
    pyrometer.stop()
    pyrometer.export(f"{sys.argv[3]}/profile.json")
    pyrometer.export(f"{sys.argv[3]}/profile.collapsed")


main()
