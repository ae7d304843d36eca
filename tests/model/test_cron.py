"""Quartz schedules: which are understood, and when they are due."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.cron import next_execution, parse_cron

WEDNESDAY = datetime(2026, 11, 25, 17, 45, 6)


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        ("* * * * * ? *", "2026-11-25 17:45:07"),
        ("0 */2 * * * ? *", "2026-11-25 17:46:00"),
        ("0 0 0/4 ? * * *", "2026-11-25 20:00:00"),
        ("30 45 17 * * ?", "2026-11-25 17:45:30"),
        ("0 45 17 * * ?", "2026-11-26 17:45:00"),
        ("0 0 1,13 ? * MON-FRI", "2026-11-26 01:00:00"),
        ("0 0 1 ? * SUN", "2026-11-29 01:00:00"),
        ("0 0 1 ? * 1", "2026-11-29 01:00:00"),
        ("0 0 1 ? * fri-mon", "2026-11-27 01:00:00"),
        ("0 0 0 L * ?", "2026-11-30 00:00:00"),
        ("0 0 0 L-2 * ?", "2026-11-28 00:00:00"),
        ("0 0 0 LW 2 ?", "2027-02-26 00:00:00"),
        ("0 0 0 1W 8 ?", "2027-08-02 00:00:00"),
        ("0 0 0 15W 5 ?", "2027-05-14 00:00:00"),
        ("0 0 0 31W 10 ?", "2027-10-29 00:00:00"),
        ("0 0 0 ? * 6L", "2026-11-27 00:00:00"),
        ("0 0 0 ? * L", "2026-11-28 00:00:00"),
        ("0 0 0 ? * 6#3", "2026-12-18 00:00:00"),
        ("0 0 0 29 FEB ?", "2028-02-29 00:00:00"),
        ("0 0 0 1 1 ? 2030", "2030-01-01 00:00:00"),
        ("0 0 22-2/2 * * ?", "2026-11-25 22:00:00"),
        ("0 0 0 10,20/5 * ?", "2026-11-30 00:00:00"),
        ("0 0 0 1 1 ? 2020", None),
        ("0 0 0 31 2 ?", None),
    ],
)
def test_when_a_schedule_is_due(schedule: str, due: str | None) -> None:
    found = parse_cron(schedule).following(WEDNESDAY)
    assert (None if found is None else str(found)) == due


@pytest.mark.parametrize(
    "schedule",
    [
        "", "asd asd", "* * * * *", "60 * * * * ?", "* 60 * * * ?", "* * 24 * * ?", "* * * 32 * ?",
        "* * * 0 * ?", "* * * * 13 ?", "* * * ? * 8", "* * * 1 * 2", "0/0 * * * * ?",
        "-1 * * * * ?", "1- * * * * ?", "* * * ? * 6#6", "* * * ? * #1", "* * * XW * ?",
        "* * * L-32 * ?",
        "* * * * FOO ?", "* * * * * ? 1969", "* * * * * ? * *", "1_0 * * * * ?", "² * * * * ?",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(schedule: str) -> None:
    with pytest.raises(InvalidObjectError, match=r"^Invalid schedule: "):
        parse_cron(schedule)


_NUMBERS = st.integers(0, 30).map(str)
_TERMS = st.one_of(
    st.just("*"), _NUMBERS, st.tuples(_NUMBERS, _NUMBERS).map("-".join),
    st.tuples(st.just("*"), st.integers(1, 30).map(str)).map("/".join),
)  # fmt: skip


@given(st.tuples(_TERMS, _TERMS), st.integers(0, 2**31 - 86_400 * 2))
def test_it_is_due_at_the_first_second_that_matches(terms: tuple[str, str], after: int) -> None:
    cron = parse_cron(f"{terms[0]} {terms[1]} * * * ?")
    due = next_execution(f"{terms[0]} {terms[1]} * * * ?", after)
    seconds = (after + step for step in range(1, 3601))
    shown = ((at, datetime.fromtimestamp(at)) for at in seconds)
    first = next(
        at
        for at, moment in shown
        if moment.second in cron.seconds and moment.minute in cron.minutes
    )
    assert due == first


def test_nothing_is_due_beyond_what_hive_can_store() -> None:
    assert next_execution("0 0 0 1 1 ? 2040", 0) is None
