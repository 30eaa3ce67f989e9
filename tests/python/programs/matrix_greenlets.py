# SPDX-License-Identifier: Apache-2.0
"""Several stacks taking turns on one thread; only where greenlet (and gevent) can be imported."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from matrix_work import Trouble, burn, burn_through_c, sink

greenlet: Any = None
gevent: Any = None


def load(with_gevent: bool) -> None:
    """Imports them, when the matrix says: before the start of the profiler or after."""
    global greenlet, gevent
    greenlet = importlib.import_module("greenlet")
    if with_gevent:
        gevent = importlib.import_module("gevent")


def ping_pong(rng: Random) -> None:
    """Switches from inside deep stacks that share their codes."""
    players: list[Any] = []

    def play(index: int, turns: int) -> None:
        for _ in range(turns):
            burn(2)
            sink(rng.randrange(12), players[1 - index].switch)
            burn_through_c(1)

    def player(index: int) -> Callable[..., None]:
        return lambda *_: sink(index * 3 + 1, lambda: play(index, 4)) and None

    players.extend(greenlet.greenlet(player(index)) for index in range(2))
    players[0].switch()
    while any(players):
        for one in players:
            if one:
                one.switch()
        burn(1)


def thrown_into(rng: Random) -> None:
    def target() -> str:
        for _ in range(3):
            try:
                sink(rng.randrange(6), greenlet.getcurrent().parent.switch)
            except Trouble:
                burn(3)
                if rng.random() < 0.3:
                    raise
        return "done"

    one = greenlet.greenlet(target)
    with contextlib.suppress(Trouble):
        one.switch()
        for _ in range(2):
            one.throw(Trouble)
            burn(2)
    fresh = greenlet.greenlet(target)
    with contextlib.suppress(Trouble):
        fresh.throw(Trouble)
    burn(1)


def dropped(_rng: Random) -> None:
    """A suspended greenlet that is collected gets GreenletExit."""

    def waits() -> None:
        try:
            sink(4, greenlet.getcurrent().parent.switch)
        finally:
            burn(2)

    one = greenlet.greenlet(waits)
    one.switch()
    del one
    burn(2)


def with_parents(rng: Random) -> None:
    """Ending goes to the parent, which may be another greenlet than the one that switched."""

    def leaf(depth: int) -> int:
        sink(3, greenlet.getcurrent().parent.switch)
        if depth > 0 and rng.random() < 0.3:
            raise Trouble
        return burn(2)

    def middle() -> int:
        child = greenlet.greenlet(lambda: leaf(1))
        with contextlib.suppress(Trouble):
            child.switch()
            burn(1)
            child.switch()
        adopted = greenlet.greenlet(lambda: leaf(0), greenlet.getcurrent())
        adopted.switch()
        adopted.parent = greenlet.getcurrent().parent
        return burn(1) + (adopted.switch() or 0)

    def end() -> None:
        burn(2)

    outer = greenlet.greenlet(middle)
    while outer:
        outer.switch()
        burn(1)
    dead = greenlet.greenlet(end)
    dead.switch()
    assert dead.dead
    dead.switch()
    burn(1)


def generators_across(rng: Random) -> None:
    """A generator resumed from different greenlets, and one that switches while it runs."""

    def values() -> Iterator[int]:
        while True:
            greenlet.getcurrent().parent.switch() if greenlet.getcurrent().parent else None
            yield burn(1)

    shared = values()

    def taker() -> None:
        for _ in range(3):
            with contextlib.suppress(ValueError):
                next(shared)
            burn(1)
            greenlet.getcurrent().parent.switch()

    takers = [greenlet.greenlet(taker) for _ in range(3)]
    for _ in range(10):
        live = [one for one in takers if one]
        if not live:
            break
        rng.choice(live).switch()
        burn(1)


def from_callbacks(rng: Random) -> None:
    """Switches below C callbacks, whose native frames greenlet moves about."""

    def sorter() -> None:
        def key(value: int) -> int:
            greenlet.getcurrent().parent.switch()
            return burn(value)

        sorted((3, 2, 1), key=key)

    ones = [greenlet.greenlet(sorter) for _ in range(3)]
    while any(ones):
        rng.choice([one for one in ones if one]).switch()
        burn_through_c(1)


def gevent_spawned(rng: Random) -> None:
    def worker(index: int) -> int:
        for _ in range(3):
            sink(index, lambda: gevent.sleep(0))
            burn(index % 4)
        if rng.random() < 0.2:
            raise Trouble
        return burn(2)

    def quiet(index: int) -> int:
        with contextlib.suppress(Trouble):
            return worker(index)
        return 0

    jobs = [gevent.spawn(quiet, index) for index in range(5)]
    burn(2)
    if rng.random() < 0.5:
        gevent.sleep(0)
        jobs[rng.randrange(5)].kill()
    gevent.joinall(jobs)
    burn(1)


def gevent_timed(_rng: Random) -> None:
    def slow() -> None:
        try:
            sink(5, lambda: gevent.sleep(10))
        finally:
            burn(2)

    with contextlib.suppress(gevent.Timeout), gevent.Timeout(0.0005):
        slow()
    job = gevent.spawn(slow)
    gevent.sleep(0)
    job.kill()
    burn(1)


def scenarios() -> tuple[Callable[[Random], None], ...]:
    found: tuple[Callable[[Random], None], ...] = ()
    if greenlet is not None:
        found = (
            ping_pong,
            thrown_into,
            dropped,
            with_parents,
            generators_across,
            from_callbacks,
        )
    if gevent is not None:
        found += (gevent_spawned, gevent_timed)
    return found
