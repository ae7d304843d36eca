"""The comparison itself: real Hive agrees with itself, and a small change is found, wherever it
is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from integration.comparison.cases import ACID, INSERT_UPDATE_DELETE, METASTORE_CASES
from integration.comparison.compare import (
    Case,
    Difference,
    Observation,
    Refused,
    differences,
    observe,
    used_masks,
)
from integration.comparison.engine import CompactorThread, Fields, Row
from integration.comparison.masks import MASKS, masked
from integration.comparison.real_hive import RealHive42Engine
from integration.referees.errors import StatementError
from integration.referees.hive42 import Hive42

NUMBERS = itertools.count(1)
TWICE: dict[str, tuple[Observation, Observation]] = {}


def _engine(hive: Hive42) -> RealHive42Engine:
    return RealHive42Engine(hive, f"comparison_{next(NUMBERS):03}")


def _twice(hive: Hive42, case: Case) -> tuple[Observation, Observation]:
    """The case on two engines that are both real Hive, run once for all who ask."""
    if case.name not in TWICE:
        TWICE[case.name] = (observe(_engine(hive), case), observe(_engine(hive), case))
    return TWICE[case.name]


@pytest.mark.parametrize("case", METASTORE_CASES, ids=lambda case: case.name)
def test_hive_agrees_with_itself(hive42: Hive42, case: Case) -> None:
    one, other = _twice(hive42, case)
    assert differences(one, other) == []


def test_every_mask_hides_something(hive42: Hive42) -> None:
    used = set().union(
        *(used_masks(seen) for case in METASTORE_CASES for seen in _twice(hive42, case))
    )
    assert set(MASKS) - used == set()


def test_every_mask_says_why() -> None:
    assert [mask for mask in MASKS if len(mask.reason) < 20] == []


CHANGES = {
    "a row": ("insert into ${db}.t values (4, 'd')", "insert into ${db}.t values (4, 'D')"),
    "a kind of compaction": (
        "alter table ${db}.t compact 'minor'",
        "alter table ${db}.t compact 'major'",
    ),
    "a property": (
        f"create table ${{db}}.t (id int, v string) {ACID}",
        f"create table ${{db}}.t (id int, v string) comment 'other' {ACID}",
    ),
}
EXPECTED = {
    "a row": "rows of t",
    "a kind of compaction": "compaction queue",
    "a property": "notification log",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(hive42: Hive42, change: str) -> None:
    old, new = CHANGES[change]
    steps = tuple(new if step == old else step for step in INSERT_UPDATE_DELETE.steps)
    assert steps != INSERT_UPDATE_DELETE.steps
    one, _ = _twice(hive42, INSERT_UPDATE_DELETE)
    other = observe(_engine(hive42), replace(INSERT_UPDATE_DELETE, steps=steps))
    answers = [
        (step, answer) for (step, _), (_, answer) in zip(one.answers, other.answers, strict=True)
    ]
    found = differences(one, replace(other, answers=answers))
    assert any(EXPECTED[change] in difference.place for difference in found), found


class Recorded:
    """An engine that shows what it was given."""

    def __init__(self, name: str, **shown: list[Fields] | list[str] | list[Row]) -> None:
        self.name = name
        self.database = f"db_of_{name}"
        self.own_names = {f"/home/of/{name}": "${warehouse}"}
        self._shown = shown
        self.turns: list[CompactorThread] = []

    def sql(self, statement: str) -> list[Row]:
        if "refuse" in statement:
            raise StatementError(engine=self.name, statement=statement, message="no")
        return [(statement,)] if "echo" in statement else self._shown.get("rows", [])  # type: ignore[return-value]

    def list_files(self, table: str) -> list[str]:
        return self._shown.get("files", [])  # type: ignore[return-value]

    def queue_rows(self) -> list[Fields]:
        return self._shown.get("queue", [])  # type: ignore[return-value]

    def notification_rows(self) -> list[Fields]:
        return self._shown.get("notifications", [])  # type: ignore[return-value]

    def run(self, thread: CompactorThread) -> None:
        self.turns.append(thread)


LOOK = Case(name="look", steps=("select 1", "!Worker"), acid_tables=("t",))


def _differences(
    make: Callable[[str], Recorded], other: Callable[[str], Recorded]
) -> list[Difference]:
    return differences(observe(make("one"), LOOK), observe(other("other"), LOOK))


@pytest.mark.parametrize(
    ("what", "left", "right"),
    [
        ("rows of t", {"rows": [("{1}", "a")]}, {"rows": [("{2}", "a")]}),
        ("files of t", {"files": ["base_1_v7/"]}, {"files": ["base_2_v7/"]}),
        ("compaction queue", {"queue": [{"STATE": "r"}]}, {"queue": [{"STATE": "s"}]}),
        ("compaction queue", {"queue": [{"STATE": "r"}]}, {"queue": []}),
        (
            "notification log",
            {"notifications": [{"EVENT_TYPE": "A"}]},
            {"notifications": [{"EVENT_TYPE": "B"}]},
        ),
        (
            "notification log",
            {"notifications": [{"MESSAGE": {"tableObjJson": {"1": {"str": "a"}}}}]},
            {"notifications": [{"MESSAGE": {"tableObjJson": {"1": {"str": "b"}}}}]},
        ),
    ],
)
def test_each_kind_of_difference_is_named(
    what: str, left: dict[str, list[Fields]], right: dict[str, list[Fields]]
) -> None:
    found = _differences(lambda name: Recorded(name, **left), lambda name: Recorded(name, **right))
    assert any(what in difference.place for difference in found), found


def test_what_is_masked_may_differ() -> None:
    left = {
        "files": ["base_0000004_v0000010/"],
        "queue": [{"ID": 1, "WORKER_ID": "a", "STATE": "s"}],
        "notifications": [
            {"EVENT_ID": 5, "EVENT_TIME": 1, "MESSAGE": {"txnid": 3, "timestamp": 1}}
        ],
    }
    right = {
        "files": ["base_0000004_v0000999/"],
        "queue": [{"ID": 9, "WORKER_ID": "b", "STATE": "s"}],
        "notifications": [
            {"EVENT_ID": 7, "EVENT_TIME": 2, "MESSAGE": {"txnid": 4, "timestamp": 2}}
        ],
    }
    assert (
        _differences(lambda name: Recorded(name, **left), lambda name: Recorded(name, **right))
        == []
    )


def test_a_mask_does_not_hide_that_a_value_is_missing() -> None:
    assert masked("queue", {"START": None})["START"] is None
    found = _differences(
        lambda name: Recorded(name, queue=[{"START": 5}]),
        lambda name: Recorded(name, queue=[{"START": None}]),
    )
    assert found


def test_names_of_databases_and_warehouses_may_differ() -> None:
    def recorded(name: str) -> Recorded:
        return Recorded(
            name,
            notifications=[{"DB_NAME": f"db_of_{name}", "MESSAGE": {"x": f"/home/of/{name}/t"}}],
        )

    assert _differences(recorded, recorded) == []


def test_refusing_and_answering_differ() -> None:
    case = Case(name="answers", steps=("echo ${db}", "refuse"))
    one = observe(Recorded("one"), case)
    assert one.answers == [("echo ${db}", [("echo db_of_one",)]), ("refuse", Refused("any words"))]
    other = replace(one, engine="other", answers=[one.answers[0], ("refuse", [])])
    (difference,) = differences(one, other)
    assert (difference.aspect, difference.place) == ("answers", "refuse")
    assert str(difference) == "refuse answer: Refused(message='no') against []"


def test_turns_are_taken_in_order() -> None:
    engine = Recorded("one")
    observe(engine, Case(name="turns", steps=("!Initiator", "!Worker", "!Cleaner")))
    assert engine.turns == ["Initiator", "Worker", "Cleaner"]
    with pytest.raises(ValueError, match="no such compactor thread: Sweeper"):
        observe(engine, Case(name="typo", steps=("!Sweeper",)))
