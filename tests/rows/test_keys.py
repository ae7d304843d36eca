from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.acid.row_id import RowId
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.rows.keys import (
    Keys,
    is_among,
    is_sorted,
    is_valid_mask,
    key_bounds,
    keys_between,
    sort_keys,
)

HUGE = 2**62
ids = st.lists(
    st.builds(
        RowId,
        st.integers(0, 3) | st.just(HUGE),
        st.integers(536870912, 536870914),
        st.integers(0, 5) | st.just(HUGE),
    ),
    max_size=30,
)


def keys(row_ids: list[RowId]) -> Keys:
    return (
        pa.array([one.write_id for one in row_ids], pa.int64()),
        pa.array([one.bucket for one in row_ids], pa.int32()),
        pa.array([one.row_id for one in row_ids], pa.int64()),
    )


def back(given_keys: Keys) -> list[RowId]:
    return [RowId(*one) for one in zip(*(column.to_pylist() for column in given_keys), strict=True)]


@given(ids, ids)
def test_finding_is_set_membership(some: list[RowId], others: list[RowId]) -> None:
    assert is_among(keys(some), keys(others)).to_pylist() == [one in set(others) for one in some]


@given(ids)
def test_order(some: list[RowId]) -> None:
    assert is_sorted(keys(some), allows_equal=True) is (some == sorted(some))
    assert is_sorted(keys(some), allows_equal=False) is (some == sorted(set(some)))
    assert back(sort_keys(keys(some))) == sorted(some)


@given(ids.filter(bool), ids.filter(lambda found: len(found) > 1))
def test_bounds_and_ranges(some: list[RowId], ends: list[RowId]) -> None:
    low, high = key_bounds(keys(some))
    assert all(low <= one <= high for one in some)
    first, last = sorted(ends[:2])
    ordered = sorted(some)
    wanted = [one for one in ordered if first <= one <= last]
    assert back(keys_between(keys(ordered), first, last)) == wanted


def test_validity() -> None:
    seen = ValidWriteIdList(
        table=None, high_watermark=WriteId(5), aborted_ids=(WriteId(3),), open_ids=(WriteId(4),)
    )
    mask = is_valid_mask(pa.array([0, 1, 3, 4, 5, 6], pa.int64()), seen)
    assert mask is not None
    assert mask.to_pylist() == [True, True, False, False, True, False]
    assert is_valid_mask(pa.array([1, 5], pa.int64()), seen) is None
