# SPDX-License-Identifier: Apache-2.0
"""Generators: every way to enter, leave and end one."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from random import Random

from matrix_work import Trouble, burn, burn_through_c, sink


def numbers(count: int, depth: int) -> Generator[int, object, int]:
    """Yields also out of `except` and `finally`, as few generators do and all may."""
    done = 0
    try:
        while done < count:
            try:
                sent = yield burn(done % 3)
                done += 1 if sent is None else 2
            except Trouble:
                burn(depth % 4)
                yield -1
                burn_through_c(1)
    finally:
        burn(2)
    return done


def delegating(count: int, depth: int) -> Generator[int, object, int]:
    """`depth` generators, each in the next one's `yield from`."""
    if depth == 0:
        return (yield from numbers(count, depth))
    try:
        return (yield from delegating(count, depth - 1))
    except Trouble:
        burn(1)
        yield -2
        return burn(2)
    finally:
        burn(1)


def unhandled(count: int) -> Iterator[int]:
    for number in range(count):
        yield burn(number % 3)


def tree(depth: int) -> Iterator[int]:
    """Direct recursion of one code, without `yield from`."""
    yield burn(1)
    if depth > 0:
        for _ in range(2):
            for value in tree(depth - 1):  # noqa: UP028 - each level is resumed on its own
                yield value


class Handmade:
    """An iterator with send and throw that is no generator."""

    def __init__(self, inner: Generator[int, object, int]) -> None:
        self.inner = inner

    def __iter__(self) -> Handmade:
        return self

    def __next__(self) -> int:
        return next(self.inner)

    def send(self, value: object) -> int:
        return self.inner.send(value)

    def throw(self, *trouble: object) -> int:
        burn(1)
        return self.inner.throw(trouble[0])  # type: ignore[call-overload,no-any-return]

    def close(self) -> None:
        self.inner.close()


def over_handmade(count: int) -> Generator[int, object, object]:
    return (yield from Handmade(delegating(count, 1)))  # type: ignore[misc]


def sent_to(rng: Random) -> None:
    generator = delegating(6, rng.randrange(5))
    with contextlib.suppress(StopIteration):
        generator.send(None)
        while True:
            generator.send(rng.choice((None, 1)))
            burn(1)


def thrown_into(rng: Random) -> None:
    """After a throw that was answered by a yield, the awaiters are suspended without a word."""
    generator: Generator[int, object, object] = delegating(5, rng.randrange(6))
    if rng.random() < 0.3:
        generator = over_handmade(5)
    with contextlib.suppress(StopIteration, Trouble):
        for _ in range(rng.randrange(4)):
            next(generator)
        for _ in range(3):
            generator.throw(Trouble())
            burn(2)
            burn_through_c(1)
            if rng.random() < 0.5:
                next(generator)


def thrown_into_from_deep(rng: Random) -> None:
    """Nested: a generator that handles a throw throws into another one."""

    def outer() -> Iterator[int]:
        inner = delegating(3, 2)
        next(inner)
        while True:
            try:
                yield burn(1)
            except Trouble:
                with contextlib.suppress(StopIteration, Trouble):
                    inner.throw(Trouble())
                    burn(1)

    def chain() -> Iterator[int]:
        yield from outer()

    generator = chain()
    next(generator)
    for _ in range(rng.randrange(1, 4)):
        generator.throw(Trouble())  # type: ignore[attr-defined]
        burn(1)
    generator.close()  # type: ignore[attr-defined]


def thrown_into_at_depth(rng: Random) -> None:
    """Near the depths where the ring of deep frames begins, with deeper calls in between."""

    def inner() -> Iterator[int]:
        while True:
            try:
                yield burn(1)
            except Trouble:
                sink(rng.choice((5, 70, 140)), lambda: burn(1))
                yield -1

    def outer(depth: int) -> Iterator[int]:
        yield from inner() if depth == 0 else outer(depth - 1)

    def play() -> None:
        generator = outer(rng.randrange(4))
        next(generator)
        generator.throw(Trouble())  # type: ignore[attr-defined]
        sink(rng.choice((2, 80)), lambda: burn(1))
        next(generator)

    sink(rng.choice((170, 180, 190, 200, 240)), play)


def closed(rng: Random) -> None:
    generator = delegating(5, rng.randrange(4))
    for _ in range(rng.randrange(3)):
        next(generator)
    generator.close()
    burn(1)
    plain = unhandled(3)
    next(plain)
    plain.close()
    burn(1)


def dropped(rng: Random) -> None:
    generator = delegating(5, rng.randrange(4))
    for _ in range(rng.randrange(3)):
        next(generator)
    del generator
    burn(1)
    for _ in unhandled(5):
        break
    burn(1)


def thrown_at_unstarted(_rng: Random) -> None:
    with contextlib.suppress(Trouble):
        numbers(3, 1).throw(Trouble())
    with contextlib.suppress(Trouble):
        delegating(3, 2).throw(Trouble())
    burn(1)


def consumed_by_c(rng: Random) -> None:
    sum(tree(rng.randrange(4)))
    list(map(burn, unhandled(4)))
    max(unhandled(3), default=0)
    any(value < 0 for value in numbers(4, 1))
    dict.fromkeys(burn(i) for i in range(3))


def failing_inside(rng: Random) -> None:
    def bad(depth: int) -> Iterator[int]:
        yield burn(1)
        if depth == 0:
            raise Trouble
        yield from bad(depth - 1)

    with contextlib.suppress(Trouble):
        list(bad(rng.randrange(5)))
    with contextlib.suppress(Trouble):
        sum(map(burn, bad(2)))


SCENARIOS = (
    sent_to,
    thrown_into,
    thrown_into_from_deep,
    thrown_into_at_depth,
    closed,
    dropped,
    thrown_at_unstarted,
    consumed_by_c,
    failing_inside,
)
