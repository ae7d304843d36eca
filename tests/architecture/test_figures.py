"""What `figures.py` counts, and the aims that it holds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.architecture.figures import (
    Module,
    figures,
    files_at_top,
    importers_of_drivers,
    openers,
    pass_through_verbs,
    product,
    repeating_records,
)


@pytest.fixture(scope="module")
def checkout() -> Sequence[Module]:
    """The product's modules: four seconds, which whoever only collects the tests is spared."""
    return product(Path(__file__).parents[2])


def _module(name: str, text: str) -> Module:
    return Module(name, text, ast.parse(text))


@pytest.mark.parametrize(
    ("count", "most"),
    [(pass_through_verbs, 0), (importers_of_drivers, 0), (openers, 1), (repeating_records, 3)],
)
def test_what_was_reached_stays(
    count: Callable[[Sequence[Module]], Iterator[str]], most: int, checkout: Sequence[Module]
) -> None:
    names = list(count(checkout))
    assert len(names) <= most, names


def test_no_more_files_stand_at_the_top_of_replication(checkout: Sequence[Module]) -> None:
    """They were 37; the aim is twelve."""
    names = list(files_at_top(checkout, "hms_bridge/repl/"))
    assert len(names) <= 12, names


def test_planted_ones_are_counted() -> None:
    verbs = """
class LockVerbs:
    def lock(self, request):
        return self._transactions.write(lambda unit: locks.lock(unit, request))
    def lock_all(self, requests):
        for request in requests:
            self._transactions.write(lambda unit: locks.lock(unit, request))
"""
    record = """
class Written:
    database_name: str
    table: str
    partition: str | None
"""
    modules = [
        _module("hms_bridge/service/locks.py", verbs),
        _module("hms_bridge/orc/tail.py", "from fsspec.spec import AbstractFileSystem"),
        _module("hms_bridge/spark/job.py", "(txn_id,) = metastore.open_txns(request)"),
        _module("hms_bridge/repl/written.py", record),
        _module("hms_bridge/repl/load/plan.py", ""),
    ]
    counted = (pass_through_verbs, importers_of_drivers, openers, repeating_records)
    assert [len(list(count(modules))) for count in counted] == [1, 1, 1, 1]
    assert list(files_at_top(modules, "hms_bridge/repl/")) == ["hms_bridge/repl/written.py"]


def test_comments_are_for_people() -> None:
    (module,) = [_module("x.py", "x = 1  # noqa: E1\n# why\ny = 2  # type: ignore\n")]
    assert module.comments == 1


def test_each_figure_is_told() -> None:
    module = _module("hms_bridge/rows/scan.py", "def read():\n    return 1\n" + "# why\n" * 60)
    values = {figure.name: figure.value for figure in figures([module])}
    assert values["product lines"] == "62"
    assert values["lines of a function"].startswith("median 2, longest 2 ")
    (share,) = [value for name, value in values.items() if name.startswith("comments")]
    assert share == "967.7 (everywhere 967.7)"
