# SPDX-License-Identifier: Apache-2.0
"""A real program to profile: Pygments renders its own sources as HTML.

`make demo` does that; by hand: pyrometer run examples/demo.py
"""

from __future__ import annotations

from pathlib import Path

import pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

EVERY = 2  # of some 350 files every second, for a few seconds of work


def render(file: Path) -> int:
    source = file.read_text(encoding="utf-8")
    return len(pygments.highlight(source, PythonLexer(), HtmlFormatter(full=True)))


def main() -> None:
    files = sorted(Path(pygments.__file__).parent.rglob("*.py"))[::EVERY]
    rendered = sum(render(file) for file in files)
    print(f"rendered {len(files)} files as {rendered:,} characters of HTML")


if __name__ == "__main__":
    main()
