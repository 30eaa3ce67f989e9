# SPDX-License-Identifier: Apache-2.0
"""Tables as Markdown, and the few figures that they are made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def show(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    whole = [list(head), *map(list, rows)]
    widths = [max(len(row[i]) for row in whole) for i in range(len(head))]
    print(f"\n{title}\n")
    for index, row in enumerate(whole):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
        if index == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print(flush=True)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def ratio(value: float | None) -> str:
    return (
        ""
        if value is None or math.isnan(value)
        else f"{value:.3f}"
        if value < 2
        else f"{value:.2f}"
    )


def points(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
