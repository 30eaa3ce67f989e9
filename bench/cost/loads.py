# SPDX-License-Identifier: Apache-2.0
"""The work that is measured: `load(name)` prepares one and gives a function that does it once.

A run is short (about 0.2 s without a profiler), deterministic and pure Python. A name may
carry arguments: "pygments", "python_depth:100", "threads:8".
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

Load = Callable[[], object]

REAL = ("pygments", "sqlglot", "networkx", "html5lib", "docutils", "ast", "asyncio", "jinja")
FIB = "fib"


def load(name: str) -> Load:
    """ImportError when this Python does not have what the load needs."""
    kind, _, argument = name.partition(":")
    prepare: Callable[..., Load] = PREPARE[kind]
    return prepare(int(argument)) if argument else prepare()


def source(module: object, lines: int) -> str:
    text = Path(str(module.__file__)).read_text()  # type: ignore[attr-defined]
    return "\n".join(text.splitlines()[:lines])


def pygments() -> Load:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    text = source(argparse, 1300)
    return lambda: highlight(text, PythonLexer(), HtmlFormatter())


QUERY = """
WITH recent AS (SELECT id, name, COUNT(*) AS n, SUM(price * {0}) AS total FROM orders
  LEFT JOIN users ON orders.user_id = users.id AND users.age > {0}
  WHERE created BETWEEN DATE '2026-01-01' AND CURRENT_DATE AND status IN ('a', 'b', 'c')
  GROUP BY id, name HAVING COUNT(*) > {0})
SELECT name, CASE WHEN total > {0} THEN 'large' ELSE LOWER(name) END AS size,
  ROW_NUMBER() OVER (PARTITION BY name ORDER BY total DESC) AS place
FROM recent JOIN (SELECT DISTINCT id FROM items WHERE a = 1 OR (b = 2 AND NOT c < 3)) AS i
  USING (id) ORDER BY total DESC, name LIMIT {0}
"""


def sqlglot() -> Load:
    import sqlglot

    queries = [QUERY.format(i) for i in range(25)]
    return lambda: [sqlglot.parse_one(query, read="postgres").sql("mysql") for query in queries]


def networkx() -> Load:
    import networkx

    graph = networkx.gnm_random_graph(130, 500, seed=1)

    def run() -> None:
        networkx.betweenness_centrality(graph)
        networkx.node_connectivity(graph, 1, 2)
        networkx.minimum_spanning_tree(graph)

    return run


def html5lib() -> Load:
    import html5lib

    row = "<tr><td class=a id='r{0}'>{0}<td><a href='/x?a={0}&amp;b=1'>link <b>bold</a></b><p>text"
    page = "<!doctype html><title>t</title><table>" + "\n".join(map(row.format, range(250)))
    return lambda: html5lib.parse(page)


SECTION = """
Part {0}
--------

A paragraph with *emphasis*, ``literals`` and a `link {0} <https://example.org/{0}>`_,
which goes on for another line. [#]_

* one
* two, with **more** in it

  1. nested {0}
  2. again

.. note:: Something to note, number {0}.

.. [#] A note at the foot.

+------+-------+
| head | value |
+======+=======+
| a    | {0:5} |
+------+-------+
"""


def docutils() -> Load:
    from docutils.core import publish_string

    text = "Title\n=====\n" + "".join(map(SECTION.format, range(12)))
    settings = {"report_level": 5, "embed_stylesheet": False}
    return lambda: publish_string(text, writer="html5", settings_overrides=settings)


def syntax_tree() -> Load:
    text = source(argparse, 1500)
    return lambda: ast.unparse(ast.parse(ast.unparse(ast.parse(text))))


async def _worker(queue: asyncio.Queue[int], results: list[int]) -> None:
    while (item := await queue.get()) >= 0:
        await asyncio.sleep(0)
        results.append(item * item)
        queue.task_done()


async def _serve() -> int:
    queue: asyncio.Queue[int] = asyncio.Queue(20)
    results: list[int] = []
    workers = [asyncio.create_task(_worker(queue, results)) for _ in range(20)]
    for item in range(8000):
        await queue.put(item)
    for _ in workers:
        await queue.put(-1)
    await asyncio.gather(*workers)
    return len(results)


def event_loop() -> Load:
    return lambda: asyncio.run(_serve())


TEMPLATE = textwrap.dedent("""
    {% macro cell(value, kind) %}<td class="{{ kind }}">{{ value|upper }}</td>{% endmacro %}
    {% macro row(item) %}<tr>
      {% for key, value in item|dictsort %}{{ cell(key, 'k') }}{{ cell(value, 'v') }}{% endfor %}
      {% if item.number is divisibleby 3 %}{{ cell(item.number|string, 'third') }}{% endif %}
    </tr>{% endmacro %}
    <table>{% for item in items %}{{ row(item) }}{% endfor %}</table>
""")


def jinja() -> Load:
    from jinja2 import Environment

    template = Environment(autoescape=True).from_string(TEMPLATE)
    items = [{"name": f"n{i}", "text": f"<{i}>", "number": i} for i in range(1500)]
    return lambda: template.render(items=items)


def _fib(n: int) -> int:
    return n if n < 2 else _fib(n - 1) + _fib(n - 2)


def fib(n: int = 28) -> Load:
    return lambda: _fib(n)


def _loop(rounds: int) -> int:
    total = 0
    for i in range(rounds):
        total += i * i
    return total


def _in_python(depth: int) -> int:
    return _in_python(depth - 1) if depth else _loop(4_000_000)


def _through_native(depth: int) -> int:
    return max(map(_through_native, (depth - 1,))) if depth else _loop(4_000_000)


def python_depth(depth: int) -> Load:
    """A loop that calls nothing, under so many Python frames."""
    sys.setrecursionlimit(10_000)
    return lambda: _in_python(depth)


def native_depth(depth: int) -> Load:
    """The same, each Python frame called by native code: max, map and the evaluation loop."""
    sys.setrecursionlimit(10_000)
    return lambda: _through_native(depth)


def _in_threads(works: list[Load]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def threads(count: int) -> Load:
    """The same work whatever the count: small calls, spread over so many threads."""
    rounds = 3000 // count
    return lambda: _in_threads([lambda: [_fib(12) for _ in range(rounds)]] * count)


def idle(count: int) -> Load:
    """One busy thread, this one, and so many that wait."""
    end = threading.Event()
    for _ in range(count):
        threading.Thread(target=end.wait, daemon=True).start()
    return lambda: _fib(25)


SHORT = 0.002  # seconds of CPU


def short(count: int) -> Load:
    """So many threads of 2 ms, one after another."""
    start = time.thread_time()
    _loop(1_000_000)
    rounds = round(1_000_000 * SHORT / (time.thread_time() - start))

    def run() -> None:
        for _ in range(count):
            _in_threads([lambda: _loop(rounds)])

    return run


CALLS = """
def work(n=30):
    return n if n < 2 else work(n - 1) + work(n - 2)
"""

MIX = """
def text(number, words):
    return "".join(part.upper() for part in words.split("-")) + str(number)

def work(rounds=250_000):
    table = {}
    for i in range(rounds):
        table[i % 97] = text(i, "a-b-c")
"""


def _work_of(code: str) -> Load:
    names: dict[str, Load] = {}
    exec(code, names)
    return names["work"]


def parallel_calls(count: int) -> Load:
    """Each thread does the whole of it, by functions of its own: not even those are shared."""
    works = [_work_of(CALLS) for _ in range(count)]
    return lambda: _in_threads(works)


def parallel_mix(count: int) -> Load:
    """The same with strings, a dict and generators."""
    works = [_work_of(MIX) for _ in range(count)]
    return lambda: _in_threads(works)


def parallel_same(count: int) -> Load:
    """The same with one set of functions for all: their reference counts are shared."""
    works = [_work_of(MIX)] * count
    return lambda: _in_threads(works)


PREPARE: dict[str, Callable[..., Load]] = {
    "pygments": pygments,
    "sqlglot": sqlglot,
    "networkx": networkx,
    "html5lib": html5lib,
    "docutils": docutils,
    "ast": syntax_tree,
    "asyncio": event_loop,
    "jinja": jinja,
    FIB: fib,
    "python_depth": python_depth,
    "native_depth": native_depth,
    "threads": threads,
    "idle": idle,
    "short": short,
    "parallel_calls": parallel_calls,
    "parallel_mix": parallel_mix,
    "parallel_same": parallel_same,
}
