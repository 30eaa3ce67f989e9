# SPDX-License-Identifier: Apache-2.0
"""Cancels a coroutine three awaits deep in three ways; its innermost handler burns CPU."""

import asyncio
import contextlib
import time
from collections.abc import Callable

SECONDS = 0.5


def burn() -> None:
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        for _ in range(1_000):
            pass


def after_cancel() -> None:
    burn()


def after_timeout() -> None:
    burn()


def after_failure() -> None:
    burn()


async def innermost(clean_up: Callable[[], None]) -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        clean_up()
        raise


async def third(clean_up: Callable[[], None]) -> None:
    await innermost(clean_up)


async def second(clean_up: Callable[[], None]) -> None:
    await third(clean_up)


async def first(clean_up: Callable[[], None]) -> None:
    await second(clean_up)


async def by_cancel() -> None:
    task = asyncio.create_task(first(after_cancel))
    await asyncio.sleep(0.01)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def by_timeout() -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.01):
            await first(after_timeout)


async def by_group() -> None:
    with contextlib.suppress(ExceptionGroup):  # noqa: F821 - of 3.11
        async with asyncio.TaskGroup() as group:
            group.create_task(first(after_failure))
            await asyncio.sleep(0.01)
            raise ValueError


async def main() -> None:
    await by_cancel()
    await by_timeout()
    await by_group()


asyncio.run(main())
