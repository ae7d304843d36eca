"""Statistics of several partitions or writers together. What a real Hive answers to the same is in
the behaviour suite of the port; here is what needs no metastore."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hms_bridge.catalog.statistics_merge import PlacedStatistics, aggregated, all_merged, merged
from hms_bridge.model.statistics import ColumnStatistics, StatisticsKind

LONG = ColumnStatistics(
    column="l", type="int", kind=StatisticsKind.LONG, low=1, high=5, null_count=1,
    distinct_count=3, bit_vector=b"old", histogram=b"old",
)  # fmt: skip
DECIMAL = ColumnStatistics(
    column="n", type="decimal(10,2)", kind=StatisticsKind.DECIMAL, low="9.5", high="10",
    distinct_count=1,
)  # fmt: skip


def test_the_newer_bit_vector_stays() -> None:
    new = replace(LONG, low=0, high=4, distinct_count=2, bit_vector=b"new", histogram=b"new")
    found = merged(new, LONG)
    assert (found.low, found.high, found.null_count, found.distinct_count) == (0, 5, 2, 3)
    assert (found.bit_vector, found.histogram) == (b"new", b"new")


def test_decimals_are_compared_as_numbers() -> None:
    found = merged(replace(DECIMAL, low="10.25", high="9.75"), DECIMAL)
    assert (found.low, found.high) == ("9.5", "10")


def test_what_nobody_knows_stays_unknown() -> None:
    none = replace(LONG, low=None, high=None, distinct_count=0)
    assert merged(none, none).low is None
    assert (merged(none, LONG).low, merged(LONG, none).high) == (1, 5)


def test_a_column_of_another_kind_begins_anew() -> None:
    words = replace(LONG, kind=StatisticsKind.STRING, low=None, high=None)
    assert merged(words, LONG) is words
    assert all_merged([LONG], [DECIMAL]) == (LONG,)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        # (place, low, high) of the known ones among four; (low, high) drawn out to all four
        (((0, 0, 5), (1, 10, 15), (2, 20, 25)), (0, 35)),
        (((3, 0, 5), (1, 20, 25)), (0, 35)),
        (((1, 7, 7), (2, 7, 7)), (7, 7)),
    ],
)
def test_missing_partitions_are_drawn_out(
    places: tuple[tuple[int, int, int], ...], expected: tuple[int, int]
) -> None:
    known = [
        PlacedStatistics(place=place, column=replace(LONG, low=low, high=high))
        for place, low, high in places
    ]
    found = aggregated(known, 4)
    assert (found.low, found.high) == expected
    assert found.null_count == 4
    assert (found.bit_vector, found.histogram) == (None, None)


def test_one_known_partition_is_not_drawn_out() -> None:
    found = aggregated([PlacedStatistics(place=0, column=LONG)], 4)
    assert (found.low, found.high, found.null_count) == (1, 5, 1)


def test_counts_end_where_64_bits_do() -> None:
    """One client's nonsense must not make a question of others fail for ever."""
    most = 2**63 - 1
    full = replace(LONG, low=-most - 1, high=most, null_count=most, true_count=most)
    found = merged(full, full)
    assert (found.null_count, found.true_count) == (most, most)
    for places, count in (((0, 1), 2), ((0, 1), 4)):
        known = [
            PlacedStatistics(
                place=place, column=replace(full, high=most - place, low=-most + place)
            )
            for place in places
        ]
        drawn = aggregated(known, count)
        assert drawn.null_count == most
        assert -most - 1 <= drawn.low <= drawn.high <= most
