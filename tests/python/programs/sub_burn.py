# SPDX-License-Identifier: Apache-2.0
"""CPU in subinterpreters, on threads of their own and on the main one: `sub_burn.py FOLDER`."""

import sys
import threading
import time

import pyrometer
import sub_interpreters

CODE = """
import time
def sub_inner(n):
    return len(str(n))
def sub_burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for n in range(200): sub_inner(n)
sub_burn(0.3)
"""


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


def guest() -> None:
    sub_interpreters.run(CODE)
    back()


def back() -> None:
    burn(0.2)


def host() -> None:
    burn(0.3)


pyrometer.start(rate=250)
threads = [threading.Thread(target=guest, name=f"guest-{number}") for number in range(2)]
for thread in threads:
    thread.start()
host()
for thread in threads:
    thread.join()
guest()
pyrometer.stop()
pyrometer.export(f"{sys.argv[1]}/profile.json")
pyrometer.export(f"{sys.argv[1]}/profile.collapsed")
