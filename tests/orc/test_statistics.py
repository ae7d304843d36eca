from __future__ import annotations

from typing import Any

import pytest

from hms_bridge.orc import proto
from hms_bridge.orc.statistics import INT64_MAX, merge_statistics


def stats(count: int = 1, **fields: Any) -> Any:
    return proto.ColumnStatistics(number_of_values=count, has_null=False, **fields)


def integers(low: int, high: int, total: int | None = None) -> Any:
    return stats(int_statistics={"minimum": low, "maximum": high, "sum": total})


def test_counts_and_nulls_sum_up() -> None:
    known = stats(3)
    merged = merge_statistics([known, proto.ColumnStatistics(number_of_values=2)])
    assert (merged.number_of_values, merged.has_null) == (5, True)
    assert not merge_statistics([known, known]).has_null


def test_integers() -> None:
    merged = merge_statistics([integers(1, 5, 6), integers(-3, 2, -1)]).int_statistics
    assert (merged.minimum, merged.maximum, merged.sum) == (-3, 5, 5)
    merged = merge_statistics([integers(1, 5, INT64_MAX), integers(1, 1, 1)]).int_statistics
    assert not merged.HasField("sum")
    assert merged.maximum == 5


def test_a_part_without_values_takes_nothing_away() -> None:
    empty = stats(0, int_statistics={"sum": 0})
    merged = merge_statistics([empty, integers(1, 5, 6), stats(0)])
    assert merged.int_statistics.minimum == 1
    assert merge_statistics([empty]).HasField("int_statistics")


@pytest.mark.parametrize(
    "unbounded", [stats(), stats(int_statistics={"sum": 3}), stats(int_statistics={"minimum": 1})]
)
def test_missing_bounds_are_not_guessed(unbounded: Any) -> None:
    # Java's reader would take statistics without bounds for "no values" and skip the rows.
    assert not merge_statistics([integers(1, 5, 6), unbounded]).HasField("int_statistics")


def test_doubles_with_nan() -> None:
    nan = float("nan")
    tame = stats(double_statistics={"minimum": 1.0, "maximum": 2.0, "sum": 3.0})
    wild = stats(double_statistics={"minimum": nan, "maximum": nan, "sum": nan})
    for parts in ([tame, wild], [wild, tame]):
        merged = merge_statistics(parts).double_statistics
        assert merged.minimum == 1.0
        assert merged.sum != merged.sum  # NaN: readers know not to prune


def test_texts_with_cut_bounds() -> None:
    plain = stats(string_statistics={"minimum": b"b", "maximum": b"c", "sum": 2})
    cut = stats(string_statistics={"lower_bound": b"a", "upper_bound": b"bz", "sum": 5})
    merged = merge_statistics([plain, cut]).string_statistics
    assert (merged.lower_bound, merged.maximum, merged.sum) == (b"a", b"c", 7)
    assert not merged.HasField("minimum")


def test_the_other_kinds() -> None:
    def both(first: dict[str, Any], second: dict[str, Any]) -> Any:
        return merge_statistics([stats(**first), stats(**second)])

    merged = both(
        {"decimal_statistics": {"minimum": b"-10", "maximum": b"9", "sum": b"1"}},
        {"decimal_statistics": {"minimum": b"-9.5", "maximum": b"10.25", "sum": b"1"}},
    ).decimal_statistics
    assert (merged.minimum, merged.maximum, merged.HasField("sum")) == (b"-10", b"10.25", False)
    merged = both(
        {"timestamp_statistics": {"minimum_utc": 5, "maximum_utc": 9, "maximum_nanos": 3}},
        {"timestamp_statistics": {"minimum_utc": -5, "maximum_utc": 7}},
    ).timestamp_statistics
    assert (merged.minimum_utc, merged.maximum_utc) == (-5, 9)
    assert not merged.HasField("maximum_nanos")
    merged = both(
        {"bucket_statistics": {"count": [2]}}, {"bucket_statistics": {"count": [3]}}
    ).bucket_statistics
    assert list(merged.count) == [5]
    of_nulls = merge_statistics([proto.ColumnStatistics(bucket_statistics={"count": [0]})])
    assert list(of_nulls.bucket_statistics.count) == [0]
    merged = both(
        {"collection_statistics": {"min_children": 1, "max_children": 4, "total_children": 9}},
        {"collection_statistics": {"min_children": 0, "max_children": 2, "total_children": 2}},
    ).collection_statistics
    assert (merged.min_children, merged.max_children, merged.total_children) == (0, 4, 11)
    assert (
        both(
            {"binary_statistics": {"sum": 2}}, {"binary_statistics": {"sum": 3}}
        ).binary_statistics.sum
        == 5
    )
    dates = both(
        {"date_statistics": {"minimum": 1, "maximum": 2}},
        {"date_statistics": {"minimum": -1, "maximum": 1}},
    ).date_statistics
    assert (dates.minimum, dates.maximum) == (-1, 2)
