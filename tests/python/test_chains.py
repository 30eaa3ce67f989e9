# SPDX-License-Identifier: Apache-2.0
"""No profile shows a stack that did not exist: two chains of calls alternate in a loop."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import collapsed
import pytest
from chains_judge import CUT_SHORT, IMPOSSIBLE, WHOLE, judge
from conftest import Python

pytestmark = pytest.mark.long

CHAINS = Path(__file__).with_name("programs") / "chains.py"
SECONDS = 5


def own_functions(stack: collapsed.Stack) -> list[str]:
    """Those of the program, root first; `<module>` and what runs it are left out."""
    names = (name.removeprefix("__main__.") for name in stack.python)
    return [name for name in names if name != "<module>"]


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        ([], CUT_SHORT),
        (["main"], WHOLE),
        (["main", "a", "b", "leaf"], WHOLE),
        (["main", "c", "d"], WHOLE),
        (["main", "leaf"], CUT_SHORT),
        (["d", "leaf"], CUT_SHORT),
        (["main", "a", "d", "leaf"], IMPOSSIBLE),
        (["main", "b", "a"], IMPOSSIBLE),
        (["main", "a", "a"], IMPOSSIBLE),
        (["main", "a", "b", "leaf", "leaf"], IMPOSSIBLE),
    ],
)
def test_the_judge_knows_wrong_stacks(names: list[str], verdict: str) -> None:
    assert judge(names) == verdict


def test_every_stack_existed(python: Python, tmp_path: Path) -> None:
    stacks_file, summary_file = tmp_path / "chains.collapsed", tmp_path / "chains.json"
    outputs = ("-o", stacks_file, "-o", summary_file)
    done = python.profile(*outputs, "--rate", 250, "--quiet", CHAINS, SECONDS)
    assert done.returncode == 0, done.stderr
    summary = json.loads(summary_file.read_text())
    stacks = [stack for stack in collapsed.read(stacks_file) if stack.thread == "MainThread"]
    # Before and after the loop the main thread runs Python's own start and end, and ours.
    inside = [stack for stack in stacks if "__main__.main" in stack.names]
    own = [stack for stack in stacks if set(own_functions(stack)) & {"a", "b", "c", "d", "leaf"}]
    judged = Counter(judge(own_functions(stack)) for stack in {*inside, *own})
    assert judged == {WHOLE: len({*inside, *own})}
    assert set().union(*(own_functions(stack) for stack in inside)) == {
        *("main", "a", "b", "c", "d", "leaf")
    }
    assert summary["diagnostics"]["snapshot_failures"] == 0

    # All CPU of the loop is there, and the chains have equal parts of it: some 400 samples
    # each, so that 0.35 is five times what chance alone does.
    weights = Counter[str]()
    for stack in inside:
        weights.update(dict.fromkeys(set(own_functions(stack)), stack.weight))
    assert weights["main"] / 1e6 == pytest.approx(SECONDS, rel=0.1)
    assert weights["a"] == pytest.approx(weights["c"], rel=0.35)
