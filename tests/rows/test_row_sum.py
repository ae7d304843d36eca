from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_bridge.rows.row_sum import SeenRows, added_up, value_sums

TYPES = [
    pa.int64(),
    pa.string(),
    pa.list_(pa.timestamp("us")),
    pa.map_(pa.string(), pa.date32()),
    pa.struct([("d", pa.decimal128(5, 2)), ("t", pa.timestamp("ns"))]),
]
VALUES = st.tuples(
    st.integers(0, 3),
    st.sampled_from([None, "", "a", "None"]),
    st.none() | st.lists(st.none() | st.just(datetime(2024, 1, 1)), max_size=2),
    st.none() | st.dictionaries(st.sampled_from("ab"), st.just(date(2024, 1, 1)), max_size=2),
    st.none() | st.fixed_dictionaries({"d": st.just(Decimal("1.50")), "t": st.none()}),
)


def summed(batches: list[list[tuple[Any, ...]]]) -> SeenRows:
    return added_up(
        (
            len(rows),
            value_sums(
                [
                    pa.array(
                        [
                            list(v.items()) if pa.types.is_map(t) and v is not None else v
                            for v in column
                        ],
                        t,
                    )
                    for column, t in zip(zip(*rows, strict=True), TYPES, strict=True)
                ]
            ),
        )
        for rows in batches
        if rows
    )


@settings(deadline=None)
@given(st.lists(VALUES, max_size=8), st.data())
def test_neither_order_nor_cuts_matter(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    other = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    assert summed([other[:cut], other[cut:]]) == summed([rows])


@settings(deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5), VALUES)
def test_another_row_is_seen(rows: list[tuple[Any, ...]], other: tuple[Any, ...]) -> None:
    changed = [other, *rows[1:]]
    # Fields of a struct have no order; entries of a map have one.
    is_same = repr(other[:4]) == repr(rows[0][:4]) and other[4] == rows[0][4]
    assert (summed([changed]) == summed([rows])) == is_same


def test_a_row_twice_is_not_a_row_less() -> None:
    """A sum modulo two would take them for nothing."""
    row = (1, "a", None, None, None)
    assert summed([[row, row]]) != summed([[]])
    assert summed([[row, row]]).count == 2


def test_more_rows_than_become_objects_at_once() -> None:
    rows = [(number, "a", [datetime(2024, 1, 1)], None, None) for number in range(5000)]
    assert summed([rows]) == summed([rows[:1], rows[1:]])
