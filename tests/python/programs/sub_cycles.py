# SPDX-License-Identifier: Apache-2.0
"""Sessions start and stop while subinterpreters come and go: `sub_cycles.py SECONDS FOLDER`.

Prints how many of both there were.
"""

import importlib.util
import json
import sys
import threading
import time

import pyrometer
import sub_interpreters

# Modules that are frozen into the interpreter may share their code among all.
CODE = """
import codecs, collections, importlib.util, json, os, re, time
def numbers(n):
    yield from range(n)
end = time.thread_time() + 0.03
while time.thread_time() < end:
    importlib.util.find_spec('json')
    codecs.getdecoder('utf-8')
    json.dumps({'a': [1, 2]})
    re.sub('a', lambda match: 'b', 'aaa')
    sum(numbers(20))
"""
stop = threading.Event()
ended = 0


def guests() -> None:
    global ended
    while not stop.is_set():
        sub_interpreters.run(CODE)
        ended += 1


def host() -> None:
    for _ in range(20):
        importlib.util.find_spec("json")
        json.dumps([1])


sessions = 0
threads = [threading.Thread(target=guests) for _ in range(3)]
for thread in threads:
    thread.start()
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    pyrometer.start(rate=250)
    host()
    if sessions % 3 == 0:
        time.sleep(0.05)
    if sessions % 5 == 0:
        pyrometer.export(f"{sys.argv[2]}/profile.json")
    pyrometer.stop()
    sessions += 1
stop.set()
for thread in threads:
    thread.join()
print(sessions, ended)
