# SPDX-License-Identifier: Apache-2.0
"""Coroutines: cancellation at every depth, timeouts, groups, eager tasks, async generators."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Coroutine
from random import Random
from typing import Any

from matrix_work import Trouble, burn, burn_through_c


async def waiting(depth: int, rng: Random) -> None:
    """Waits `depth` awaits deep; burns, and now and then awaits, while it is cancelled."""
    try:
        if depth <= 1:
            await asyncio.sleep(10)
        else:
            await waiting(depth - 1, rng)
    except asyncio.CancelledError:
        burn(3)
        if rng.random() < 0.4:
            await asyncio.sleep(0)
        burn_through_c(1)
        if rng.random() < 0.2:
            return
        raise
    finally:
        burn(2)
        if rng.random() < 0.3:
            await asyncio.sleep(0)
            burn(1)


async def cancelled(rng: Random) -> None:
    for depth in range(1, 7):
        task = asyncio.ensure_future(waiting(depth, rng))
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)
        task.cancel()
        burn(1)
        if rng.random() < 0.3:
            await asyncio.sleep(0)
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def timed_out(rng: Random) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(rng.choice((0, 0.0005))):
            await waiting(rng.randrange(1, 5), rng)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(waiting(2, rng), 0.0001)


async def member(rng: Random, index: int) -> int:
    for _ in range(rng.randrange(3)):
        await asyncio.sleep(0)
        burn(index)
    if rng.random() < 0.2:
        raise Trouble
    return burn(index)


async def grouped(rng: Random) -> None:
    with contextlib.suppress(ExceptionGroup):  # noqa: F821 - 3.11
        async with asyncio.TaskGroup() as group:
            for index in range(5):
                group.create_task(member(rng, index))
            group.create_task(waiting(3, rng)).cancel()
    await asyncio.gather(*(member(rng, i) for i in range(3)), return_exceptions=True)


async def eager(rng: Random) -> None:
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    loop.set_task_factory(asyncio.eager_task_factory)
    try:
        await grouped(rng)
        await cancelled(rng)
    finally:
        loop.set_task_factory(before)


async def numbers(count: int) -> AsyncIterator[int]:
    try:
        for number in range(count):
            try:
                yield burn(number)
            except Trouble:
                burn(2)
                yield -1
            await asyncio.sleep(0)
    finally:
        burn(1)
        await asyncio.sleep(0)


async def generated(rng: Random) -> None:
    async for number in numbers(4):
        burn(1)
        if number == 2 and rng.random() < 0.5:
            break
    generator = numbers(4)
    await generator.__anext__()
    with contextlib.suppress(StopAsyncIteration, Trouble):
        await generator.athrow(Trouble())  # type: ignore[attr-defined]
        burn(1)
        await generator.__anext__()
    await generator.aclose()  # type: ignore[attr-defined]
    assert [value async for value in numbers(3)]


async def cancelled_in_generator(_rng: Random) -> None:
    async def consume() -> None:
        async for _ in numbers(100):
            burn(1)

    task = asyncio.ensure_future(consume())
    for _ in range(4):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


class Resource:
    async def __aenter__(self) -> Resource:
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *trouble: object) -> bool:
        burn(2)
        await asyncio.sleep(0)
        return trouble[0] is Trouble

    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return burn(1)


@contextlib.asynccontextmanager
async def managed() -> AsyncIterator[int]:
    try:
        await asyncio.sleep(0)
        yield burn(1)
    except Trouble:
        burn(2)
        await asyncio.sleep(0)
    finally:
        burn(1)


async def contexts(rng: Random) -> None:
    async with Resource(), managed():
        burn(1)
        raise Trouble
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(rng.randrange(4)):
            await stack.enter_async_context(managed())
        stack.push_async_callback(member, rng, 0)
        stack.callback(burn, 3)
        await Resource()
        if rng.random() < 0.5:
            raise Trouble


async def future_callbacks(_rng: Random) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()
    future.add_done_callback(lambda done: burn(done.result()))
    loop.call_soon(burn, 2)
    loop.call_soon(future.set_result, 3)
    await asyncio.shield(future)


async def driven_by_hand(rng: Random) -> None:
    """Coroutines without a loop, thrown into."""
    coroutine = waiting(rng.randrange(1, 5), rng)
    coroutine.close()

    class Pause:
        def __await__(self) -> Any:
            try:
                yield burn(1)
            except Trouble:
                burn(2)
                yield burn(1)

    async def deep(depth: int) -> None:
        await (Pause() if depth == 0 else deep(depth - 1))

    coroutine = deep(rng.randrange(4))
    coroutine.send(None)
    coroutine.throw(Trouble())
    burn(2)
    with contextlib.suppress(StopIteration):
        coroutine.send(None)


SCENES = (
    cancelled,
    timed_out,
    grouped,
    eager,
    generated,
    cancelled_in_generator,
    contexts,
    future_callbacks,
    driven_by_hand,
)


async def some(rng: Random) -> None:
    for _ in range(4):
        with contextlib.suppress(Trouble, asyncio.CancelledError):
            await rng.choice(SCENES)(rng)


def on_a_loop(rng: Random) -> None:
    main: Coroutine[Any, Any, None] = some(rng)
    asyncio.run(main, debug=rng.random() < 0.05)


def two_loops_in_turn(rng: Random) -> None:
    with asyncio.Runner() as one, asyncio.Runner() as two:
        for _ in range(2):
            one.run(some(rng))
            two.run(some(rng))


SCENARIOS = (on_a_loop, two_loops_in_turn)
assert sys.version_info >= (3, 12)
