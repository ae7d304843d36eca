"""Every promise of docs/safety.md names tests that exist, or says that it is open."""

from __future__ import annotations

import ast
import re
from functools import cache

from tests.support.golden import CHECKOUT
from tests.support.rules import holds_for

PAGE = CHECKOUT / "docs" / "safety.md"
_TEST = re.compile(r"`([^`]*)`")


def _rows() -> list[tuple[str, str, str]]:
    """Finding, promise and tests of each line of the tables."""
    found = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] != "finding" and set(cells[0]) != {"-"}:
            assert len(cells) == 3, line
            found.append((cells[0], cells[1], cells[2]))
    return found


@cache
def _functions(path: str) -> frozenset[str]:
    """Test functions of a file, those of behaviour classes included."""
    tree = ast.parse((CHECKOUT / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_there_are_promises() -> None:
    assert len(_rows()) > 10


@holds_for(_rows())
def test_a_promise_is_held_by_tests(finding: str, promise: str, tests: str) -> None:
    named = _TEST.findall(tests)
    assert bool(named) != promise.startswith("*Open*"), "held by a test, or open: not both"
    for test in named:
        path, _, function = test.partition("::")
        assert (CHECKOUT / path).is_file(), f"no file {path}"
        name = function.rpartition("::")[2]
        assert name.startswith("test_"), f"{finding}: {test} names no test"
        assert name in _functions(path), f"{path} has no {name}"
