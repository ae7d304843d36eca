"""Sums of ROW__IDs: the same for the same rows in any order, else other ones."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_bridge.rows.key_sum import KEY_SUM_MODULUS, key_sum
from hms_bridge.rows.keys import Keys

Row = tuple[int, int, int]
ROWS = st.sets(
    st.tuples(st.integers(0, 2**62), st.integers(0, 2**31 - 1), st.integers(0, 2**62)), max_size=9
)


def keys(rows: list[Row]) -> Keys:
    return (
        pa.array([row[0] for row in rows], pa.int64()),
        pa.array([row[1] for row in rows], pa.int32()),
        pa.array([row[2] for row in rows], pa.int64()),
    )


@settings(deadline=None)
@given(ROWS, ROWS)
def test_it_tells_sets_apart_and_not_orders(one: set[Row], other: set[Row]) -> None:
    rows = sorted(one)
    half = len(rows) // 2
    parts = key_sum("p=1", keys(rows[half:])) + key_sum("p=1", keys(rows[:half]))
    assert parts % KEY_SUM_MODULUS == key_sum("p=1", keys(rows[::-1]))
    same = key_sum("p=1", keys(rows)) == key_sum("p=1", keys(sorted(other)))
    assert same == (one == other)
    if one:
        assert key_sum("p=1", keys(rows)) != key_sum("p=2", keys(rows))


def test_neighbours_do_not_make_up_for_each_other() -> None:
    near = [(1, 536870912, number) for number in (1, 4)]
    assert key_sum("", keys(near)) != key_sum("", keys([(1, 536870912, n) for n in (2, 3)]))
    assert key_sum("", keys([(1, 2, 3)])) != key_sum("", keys([(2, 1, 3)]))
