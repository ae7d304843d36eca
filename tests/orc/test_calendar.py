from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.calendar import (
    SWITCH_DAY,
    convert_dates,
    convert_seconds,
    floor_divide,
    hybrid_day,
    proleptic_day,
)

EPOCH = date(1970, 1, 1)
GAP_START = (date(1582, 10, 5) - EPOCH).days


def days(*when: int) -> int:
    return (date(*when) - EPOCH).days


def test_the_switch() -> None:
    assert days(1582, 10, 15) == SWITCH_DAY
    # In the hybrid calendar the day before is the fourth.
    assert hybrid_day(days(1582, 10, 4)) == SWITCH_DAY - 1
    assert proleptic_day(SWITCH_DAY - 1) == days(1582, 10, 4)


@pytest.mark.parametrize(
    ("when", "shift"),
    [((1582, 10, 4), 10), ((1400, 1, 1), 8), ((1000, 6, 1), 6), ((200, 6, 1), 0), ((1, 1, 1), -2)],
)
def test_known_distances(when: tuple[int, int, int], shift: int) -> None:
    assert hybrid_day(days(*when)) - days(*when) == shift


@pytest.mark.parametrize("day", range(5, 15))
def test_a_label_of_the_gap_is_refused(day: int) -> None:
    """Hive stores another day and says nothing (golden g11_types: 10 becomes 20)."""
    with pytest.raises(AcidFormatError, match=f"1582-10-{day:02} cannot be stored"):
        hybrid_day(days(1582, 10, day))
    array = pa.array([days(1582, 10, day)], pa.int32()).cast(pa.date32())
    with pytest.raises(AcidFormatError, match="cannot be stored"):
        convert_dates(array, hybrid_day)
    with pytest.raises(AcidFormatError, match="cannot be stored"):
        convert_seconds(pa.array([days(1582, 10, day) * 86_400 + 1]), hybrid_day)


def test_a_leap_day_that_only_julius_knew_is_the_first_of_march() -> None:
    assert proleptic_day(hybrid_day(days(1500, 3, 1)) - 1) == days(1500, 3, 1)


@given(st.integers(days(1, 1, 1), days(9999, 12, 31)))
def test_labels_come_back(day: int) -> None:
    if not GAP_START <= day < SWITCH_DAY:
        assert proleptic_day(hybrid_day(day)) == day
    if day >= SWITCH_DAY:
        assert hybrid_day(day) == day


def test_arrays() -> None:
    given_days = [None, days(2020, 1, 1), days(1400, 1, 1), days(1400, 1, 1), SWITCH_DAY]
    array = pa.array(given_days, pa.int32()).cast(pa.date32())
    wanted = [None if day is None else hybrid_day(day) for day in given_days]
    assert convert_dates(array, hybrid_day).cast(pa.int32()).to_pylist() == wanted
    assert convert_dates(array[:2], hybrid_day).equals(array[:2])


def test_seconds_keep_their_time_of_day() -> None:
    second = days(1400, 1, 1) * 86_400 + 12_345
    array = pa.array([None, second, 5, -5], pa.int64())
    wanted = [None, hybrid_day(days(1400, 1, 1)) * 86_400 + 12_345, 5, -5]
    assert convert_seconds(array, hybrid_day).to_pylist() == wanted


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 10**12))
def test_quotients_round_down(number: int, divisor: int) -> None:
    assert floor_divide(pa.array([number]), divisor).to_pylist() == [number // divisor]
