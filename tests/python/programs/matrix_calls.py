# SPDX-License-Identifier: Apache-2.0
"""Calls and exceptions: through C, by descriptors and classes, too deep, in made code."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import operator
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from matrix_work import Trouble, burn, burn_through_c, sink


def fails(*_arguments: object) -> int:
    burn(1)
    raise Trouble


class Odd:
    """Answers through every hook a class may have."""

    def __init__(self, fail: bool) -> None:
        self.fail = fail

    @property
    def size(self) -> int:
        return fails() if self.fail else burn(2)

    def __getattr__(self, name: str) -> int:
        if self.fail:
            raise AttributeError(name)
        return burn(1)

    def __lt__(self, other: Odd) -> bool:
        return bool(fails()) if self.fail else burn(1) == 0

    def __hash__(self) -> int:
        return burn(2)

    def __eq__(self, other: object) -> bool:
        return burn(1) == 0

    def __repr__(self) -> str:
        return str(burn(2))

    def __len__(self) -> int:
        return burn(1)

    def __getitem__(self, index: int) -> int:
        if index > 2:
            raise IndexError
        return burn(index)

    def __del__(self) -> None:
        burn(2)
        if self.fail:
            with contextlib.suppress(Trouble):
                fails()


class Cell:
    def __get__(self, owner: object, kind: type) -> int:
        return burn(2)

    def __set__(self, owner: object, value: int) -> None:
        if value < 0:
            fails()
        burn(1)


class Holder:
    cell = Cell()


def through_c(rng: Random) -> None:
    fail = rng.random() < 0.5
    key: Callable[[Any], Any] = fails if fail else burn
    for call in (
        lambda: sorted((3, 1, 2), key=key),
        lambda: list(map(key, (1, 2))),
        lambda: re.sub("a", lambda _: str(key(2)), "aaa"),
        lambda: json.dumps([object()], default=key if fail else repr),
        lambda: functools.reduce(lambda a, b: key(2), (1, 2, 3)),
        lambda: max((1, 2), key=key),
        lambda: list(filter(key, (1, 2))),
        lambda: burn_through_c(3),
        lambda: sorted(Odd(fail) for _ in range(3)),
    ):
        with contextlib.suppress(Trouble):
            call()


def by_descriptor(rng: Random) -> None:
    poke(Odd(rng.random() < 0.5), rng)
    burn(1)


def poke(odd: Odd, rng: Random) -> None:
    for call in (
        lambda: odd.size,
        lambda: odd.missing,
        lambda: hasattr(odd, "other"),
        lambda: {odd: 1}[odd],
        lambda: list(odd),
        lambda: operator.attrgetter("size")(odd),
        lambda: repr([odd, odd]),
        lambda: setattr(Holder(), "cell", rng.choice((1, -1))),
        lambda: Holder().cell,
    ):
        with contextlib.suppress(Trouble, AttributeError, KeyError):
            call()


def finalised(rng: Random) -> None:
    odds = [Odd(rng.random() < 0.5) for _ in range(3)]
    watches = [weakref.ref(odds[0], lambda _: burn(2)), weakref.finalize(odds[1], burn, 3)]
    odds.append(odds)  # type: ignore[arg-type]
    odds.clear()
    cycle = Odd(False)
    cycle.__dict__["self"] = cycle
    del cycle, watches
    if rng.random() < 0.05:
        gc.collect()
    burn(1)


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        burn(1)
        try:
            return function(*arguments)
        finally:
            burn(1)

    return wrapper


class Decorator:
    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@traced
@Decorator
@functools.lru_cache(maxsize=4)
@traced
def decorated(size: int) -> int:
    return fails() if size == 5 else burn(size)


@functools.singledispatch
def dispatched(value: object) -> int:
    return burn(1)


@dispatched.register
def _(value: int) -> int:
    return burn(value)


def by_decorators(rng: Random) -> None:
    for _ in range(5):
        with contextlib.suppress(Trouble):
            decorated(rng.randrange(8))
        dispatched(rng.choice((2, "two")))
        functools.partial(burn, 2)()


class Meta(type):
    def __call__(cls, *arguments: Any) -> Any:
        burn(1)
        made = super().__call__(*arguments)
        burn(1)
        return made

    def __new__(mcs, name: str, bases: tuple[type, ...], names: dict[str, Any]) -> Meta:
        burn(1)
        return super().__new__(mcs, name, bases, names)


class Base(metaclass=Meta):
    def __new__(cls, *_arguments: Any) -> Base:
        burn(1)
        return super().__new__(cls)

    def __init__(self, fail: bool = False) -> None:
        if fail:
            fails()

    def __init_subclass__(cls, **_options: Any) -> None:
        burn(1)
        super().__init_subclass__()


def by_classes(rng: Random) -> None:
    class Derived(Base):
        def __set_name__(self, owner: type, name: str) -> None:
            burn(1)

        field = burn(2)

    for fail in (False, rng.random() < 0.5):
        with contextlib.suppress(Trouble):
            Derived(fail)
    with contextlib.suppress(Trouble):
        type(Derived)("Made", (Derived,), {"made": Derived()})(True)


def descend(depth: int) -> int:
    return depth if depth == 0 else 1 + descend(depth - 1)


def endless(step: int) -> int:
    return endless(step + 1)


def endless_by_turns(step: int) -> int:
    try:
        return other_turn(step + 1)
    finally:
        if step < 5:
            burn(2)


def other_turn(step: int) -> int:
    return endless_by_turns(step + 1)


def endless_through_c(depth: int) -> int:
    return sorted((depth,), key=endless_through_c)[0]


def too_deep(rng: Random) -> None:
    with contextlib.suppress(RecursionError):
        rng.choice((endless, endless_by_turns))(0)
    burn(2)
    with contextlib.suppress(Trouble):
        sink(rng.randrange(600), fails)
    descend(rng.randrange(700))
    burn(1)


def up_and_down(rng: Random) -> None:
    """Around the depths where the ring of deep frames begins and turns."""

    def wander(depth: int, left: int) -> int:
        for _ in range(2):
            if left > 0 and depth < 420:
                left = wander(depth + 1, left - 1)
                burn(1)
        return left

    sink(rng.choice((150, 180, 185, 190, 230, 250)), lambda: wander(0, rng.randrange(150)))


def too_deep_through_c(rng: Random) -> None:
    if rng.random() < 0.2:
        with contextlib.suppress(RecursionError):
            endless_through_c(0)
    burn(1)


def caught_at_many_levels(rng: Random) -> None:
    def level(depth: int) -> int:
        try:
            return fails() if depth == 0 else level(depth - 1) + burn(1)
        except Trouble:
            burn(1)
            if rng.random() < 0.4:
                return depth
            raise
        finally:
            burn(1)

    with contextlib.suppress(Trouble):
        level(rng.randrange(20))


def made_code(rng: Random) -> None:
    names: dict[str, Any] = {"burn": burn}
    exec(f"def made():\n return burn({rng.randrange(4)})\nmade()\n", names)
    exec(compile("x = [burn(i) for i in range(3)]", f"<made {rng.randrange(9)}>", "exec"), names)
    eval("(lambda: burn(2))()", names)
    with contextlib.suppress(Trouble):
        exec("def f():\n raise T\nf()", {"T": Trouble})


@contextlib.contextmanager
def managed(swallow: bool) -> Iterator[int]:
    try:
        yield burn(1)
    except Trouble:
        burn(2)
        if not swallow:
            raise
    finally:
        burn(1)


class Suppressing(contextlib.ContextDecorator):
    def __enter__(self) -> Suppressing:
        burn(1)
        return self

    def __exit__(self, *trouble: object) -> bool:
        burn(1)
        return trouble[0] is Trouble


@Suppressing()
def suppressed() -> None:
    fails()


def by_contexts(rng: Random) -> None:
    with contextlib.suppress(Trouble), managed(rng.random() < 0.5), managed(False):
        burn(1)
        fails()
    with contextlib.suppress(Trouble), contextlib.ExitStack() as stack:
        for _ in range(rng.randrange(5)):
            stack.enter_context(managed(rng.random() < 0.5))
        stack.callback(burn, 2)
        stack.push(lambda *_: burn(1) < 0)
        if rng.random() < 0.6:
            fails()
    suppressed()


SCENARIOS = (
    through_c,
    by_descriptor,
    finalised,
    by_decorators,
    by_classes,
    too_deep,
    up_and_down,
    too_deep_through_c,
    caught_at_many_levels,
    made_code,
    by_contexts,
)
assert sys.getrecursionlimit() >= 1000
