# SPDX-License-Identifier: Apache-2.0
"""The table at the end of `pyrometer run`, from the summary that the .json format holds."""

from __future__ import annotations

from pyrometer.report.terminal import columns, fit, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = tuple[str, ...]

THREADS_SHOWN = 10
NARROWEST_NAME = 24  # columns a name keeps in the narrowest terminal


def render(summary: dict[str, Any], wrote: list[str], *, top: int, width: int) -> str:
    """The whole text, each line ended; `wrote` are the files that hold the profile."""
    blocks = [
        [_headline(summary)],
        _aligned(_functions(summary, top), width),
        _aligned(_threads(summary), width),
        [_honesty(summary), *(f"wrote {printable(path)}" for path in wrote)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _headline(summary: dict[str, Any]) -> str:
    python = summary.get("python") or {}
    cpu, wall = _seconds(summary.get("cpu_s")), _seconds(summary.get("seconds"))
    line = f"pyrometer: {cpu} s of CPU in {wall} s"
    if python.get("version"):
        free_threaded = "t" if python.get("free_threaded") else ""
        line += f", Python {printable(python['version'])}{free_threaded}"
    if python.get("state") != "attributed":
        reason = python.get("reason") or "no reason given"
        some = (summary.get("diagnostics") or {}).get("samples_attributed")
        what = "Python frames at first, then" if some else "no Python frames,"
        line += f"\n{what} native ones only: {printable(reason)}"
    return line


def _functions(summary: dict[str, Any], top: int) -> list[Row]:
    """The functions with the most CPU of their own; no row at all when nothing was sampled.

    A native function without any is one of those that only call Python: left out.
    """
    functions = [
        function
        for function in summary.get("functions") or []
        if function["total_s"] > 0 and (function["self_s"] > 0 or function["category"] != "native")
    ]
    functions.sort(key=lambda f: (-f["self_s"], -f["total_s"], f["name"]))
    whole = summary.get("sampled_s") or 0
    rows = [
        (
            _seconds(function["self_s"]),
            _percent(function["self_s"], whole),
            _seconds(function["total_s"]),
            _percent(function["total_s"], whole),
            _calls(function),
            _name(function),
        )
        for function in functions[:top]
    ]
    return [("self s", "self %", "total s", "total %", "calls", "function"), *rows] if rows else []


def _threads(summary: dict[str, Any]) -> list[Row]:
    threads = sorted(summary.get("threads") or [], key=lambda t: -t["cpu_s"])
    rows = [
        (
            _seconds(thread["cpu_s"]),
            _sampled(thread),
            str(thread["tid"]),
            _thread_name(thread),
        )
        for thread in threads[:THREADS_SHOWN]
    ]
    rest = threads[THREADS_SHOWN:]
    if rest:
        cpu, sampled = (sum(thread[key] for thread in rest) for key in ("cpu_s", "sampled_s"))
        rows.append((_seconds(cpu), _seconds(sampled), "", f"({len(rest)} more)"))
    return [("CPU s", "sampled", "tid", "thread"), *rows] if rows else []


def _sampled(thread: dict[str, Any]) -> str:
    unsampled = thread.get("reason") and not thread["sampled_s"]
    return "-" if unsampled else _seconds(thread["sampled_s"])


def _honesty(summary: dict[str, Any]) -> str:
    """What was sampled, what was lost and what it cost, in one line."""
    diagnostics = summary.get("diagnostics") or {}
    stored = diagnostics.get("stored", 0)
    lost = {cause: count for cause, count in (diagnostics.get("lost") or {}).items() if count}
    if not stored:
        line = f"no samples: the program used {_seconds(summary.get('cpu_s'))} s of CPU"
    else:
        attributed = _percent(diagnostics.get("samples_attributed", 0), stored)
        line = f"{stored} samples, {attributed} % with Python frames"
    line += f", {sum(lost.values())} lost"
    if lost:
        line += f" ({', '.join(f'{printable(cause)} {lost[cause]}' for cause in sorted(lost))})"
    return f"{line}, overhead {summary.get('overhead_pct') or 0:.1f} % of the CPU"


def _seconds(value: float | None) -> str:
    return f"{value or 0:.3f}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def _calls(function: dict[str, Any]) -> str:
    calls = function.get("calls")
    if not calls:
        return ""
    return f"{calls:,}" if function.get("calls_exact") else f"~{calls:,}"


def _name(function: dict[str, Any]) -> str:
    """`module.qualname (file:line)`, of the file only what tells it apart."""
    name, file, line = function["name"], function.get("file") or "", function.get("line") or 0
    place = f" ({file}:{line})"
    if not file or not line or not name.endswith(place):
        return printable(name)
    short = "/".join(file.split("/")[-2:])
    return printable(f"{name[: -len(place)]} ({short}:{line})")


def _thread_name(thread: dict[str, Any]) -> str:
    reason = thread.get("reason")
    return printable(f"{thread['name']}: {reason}" if reason else thread["name"])


def _aligned(rows: list[Row], width: int) -> list[str]:
    """The rows as lines: figures to the right, the last column cut where the line ends."""
    if not rows:
        return []
    sizes = [max(columns(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    figures = ["  ".join(cell.rjust(size) for cell, size in zip(row, sizes)) for row in rows]
    room = max(width - columns(figures[0]) - 2, NARROWEST_NAME)
    return [f"{left}  {fit(row[-1], room)}".rstrip() for left, row in zip(figures, rows)]
