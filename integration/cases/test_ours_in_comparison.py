"""hms-bridge alone against real Hive alone: our SQL, server, worker and cleaner against its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from integration.comparison.cases import (
    BUCKETS,
    INSERT_ONLY_TABLE,
    INSERT_UPDATE_DELETE,
    MERGE,
    OVERWRITE_AND_TRUNCATE,
    PARTITIONS,
    REFUSALS,
)
from integration.comparison.compare import ASPECTS, Case, Difference, differences, observe
from integration.comparison.ours import OurEngine
from integration.comparison.real_hive import RealHive42Engine
from integration.referees.errors import StatementError
from integration.referees.hive42 import Hive42
from integration.referees.ours import OurServer, OurSession

NUMBERS = itertools.count(1)

EVENTS = (
    "our transactions log less: no ALTER_TABLE after a write, no OPEN_TXN and COMMIT_TXN of "
    "compactions, no property of Hive's own table objects"
)
PARTITION_STATEMENTS = "our SQL has no ALTER TABLE … DROP PARTITION"
REASON = "our worker says in other words why it refuses, before it notes user and write id"
NO_MERGE = "our SQL has no MERGE"
NO_OVERWRITE = "our SQL has no INSERT OVERWRITE and no TRUNCATE"
NO_INSERT_ONLY = "our SQL has no insert-only tables"

# What differs today, by case; everything else has to be equal.
WAITING: dict[str, dict[str, str]] = {
    INSERT_UPDATE_DELETE.name: {"notification": EVENTS},
    BUCKETS.name: {"notification": EVENTS},
    PARTITIONS.name: {
        "notification": EVENTS,
        "answers": PARTITION_STATEMENTS,
        "row": PARTITION_STATEMENTS,
        "file": PARTITION_STATEMENTS,
    },
    MERGE.name: dict.fromkeys(("answers", "row", "file", "notification"), NO_MERGE),
    OVERWRITE_AND_TRUNCATE.name: dict.fromkeys(ASPECTS, NO_OVERWRITE),
    REFUSALS.name: {"notification": EVENTS, "queue": REASON},
}
FOUND: dict[str, list[Difference]] = {}


def _found(
    hive42: Hive42, ours: OurServer, our_session: Callable[[str], OurSession], case: Case
) -> list[Difference]:
    """Where the two differ, run once for all aspects."""
    if case.name not in FOUND:
        number = next(NUMBERS)
        real = RealHive42Engine(hive42, f"alone_{number:03}")
        us = OurEngine(ours, our_session(ours.uri), f"us_{number:03}")
        FOUND[case.name] = differences(observe(real, case), observe(us, case))
    return FOUND[case.name]


def _comparison(case: Case, aspect: str, reason: str | None) -> Any:
    marks = (
        [pytest.mark.xfail(reason=reason, raises=(AssertionError, StatementError))]
        if reason
        else []
    )
    return pytest.param(case, aspect, marks=marks, id=f"{case.name}: {aspect}")


@pytest.mark.parametrize(
    ("case", "aspect"),
    [
        _comparison(case, aspect, WAITING[case.name].get(aspect))
        for case in (
            INSERT_UPDATE_DELETE,
            BUCKETS,
            PARTITIONS,
            MERGE,
            OVERWRITE_AND_TRUNCATE,
            REFUSALS,
        )
        for aspect in ASPECTS
    ]
    + [_comparison(INSERT_ONLY_TABLE, "answers", NO_INSERT_ONLY)],
)
def test_we_do_what_hive_does(
    hive42: Hive42,
    ours: OurServer,
    our_session: Callable[[str], OurSession],
    case: Case,
    aspect: str,
) -> None:
    found = _found(hive42, ours, our_session, case)
    assert [str(difference) for difference in found if difference.aspect == aspect] == []
