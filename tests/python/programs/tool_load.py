# SPDX-License-Identifier: Apache-2.0
"""A load of known size, the same every time: calls, generators, callbacks, exceptions."""

import json
import re
from collections.abc import Iterator


def leaf(n: int) -> int:
    return n * 3 % 7


def counted(n: int) -> Iterator[int]:
    for i in range(n):
        yield leaf(i)


def fails(n: int) -> int:
    if n % 3 == 0:
        raise ValueError(n)
    return leaf(n)


def caught(n: int) -> int:
    try:
        return fails(n)
    except ValueError:
        return -1


class Item:
    def __init__(self, n: int) -> None:
        self.n = n

    def __lt__(self, other: "Item") -> bool:
        return self.n < other.n


def work(rounds: int) -> int:
    total = 0
    for i in range(rounds):
        total += sum(counted(20)) + caught(i)
        total += sorted([Item(5 - j) for j in range(5)])[0].n
        total += len(re.sub("a", lambda _match: "bb", "banana"))
        total += len(json.dumps({"a": [1, i]}))
        left = counted(5)
        next(left)
        left.close()
    return total
