"""Sums of column statistics: those of a file from those of its stripes.

What is not known of one part is not known of the whole; a bound is never guessed. Statistics of a
kind without bounds are left out altogether: ORC's Java reader takes a missing bound of present
values for "no values" and would skip rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

from hms_bridge.orc import proto

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

_Keys = Callable[[Any], Any]


def merge_statistics(parts: Sequence[Any]) -> Any:
    """ColumnStatistics of one column over all parts."""
    merged = proto.ColumnStatistics()
    merged.number_of_values = sum(part.number_of_values for part in parts)
    merged.has_null = any(part.has_null or not part.HasField("has_null") for part in parts)
    if parts and all(part.HasField("bytes_on_disk") for part in parts):
        merged.bytes_on_disk = sum(part.bytes_on_disk for part in parts)
    for name, merge in _MERGERS.items():
        # A part without values knows nothing and takes nothing away.
        with_values = [part for part in parts if part.number_of_values or part.HasField(name)]
        if with_values and all(part.HasField(name) for part in with_values):
            into = getattr(merged, name)
            into.SetInParent()  # readers know a column's kind by it, even when it is empty
            merge(
                [getattr(part, name) for part in with_values],
                [getattr(part, name) for part in with_values if part.number_of_values],
                into,
            )
            if merged.number_of_values and name in _BOUNDED and not _has_bounds(into, name):
                merged.ClearField(name)
    return merged


def _has_bounds(statistics: Any, name: str) -> bool:
    if name == "string_statistics":
        lows = statistics.HasField("minimum") or statistics.HasField("lower_bound")
        return bool(lows and (statistics.HasField("maximum") or statistics.HasField("upper_bound")))
    if name == "timestamp_statistics" and statistics.HasField("minimum_utc"):
        return bool(statistics.HasField("maximum_utc"))
    return bool(statistics.HasField("minimum") and statistics.HasField("maximum"))


# Each merges all ``parts`` into one; ``filled`` are those with values.


def _merge_bounds(
    parts: Sequence[Any], filled: Sequence[Any], into: Any, key: _Keys = lambda value: value
) -> None:
    del parts
    if filled and all(part.HasField("minimum") and part.HasField("maximum") for part in filled):
        into.minimum = min((part.minimum for part in filled), key=key)
        into.maximum = max((part.maximum for part in filled), key=key)


def _merge_sums(parts: Sequence[Any], _filled: Sequence[Any], into: Any) -> None:
    if all(part.HasField("sum") for part in parts):
        into.sum = sum(part.sum for part in parts)


def _merge_integers(parts: Sequence[Any], filled: Sequence[Any], into: Any) -> None:
    _merge_bounds(parts, filled, into)
    if all(part.HasField("sum") for part in parts):
        total = sum(part.sum for part in parts)
        if INT64_MIN <= total <= INT64_MAX:
            into.sum = total


def _merge_doubles(parts: Sequence[Any], filled: Sequence[Any], into: Any) -> None:
    # NaN has no place between bounds; a sum of NaN warns readers not to trust them.
    _merge_bounds(parts, filled, into, key=lambda value: (math.isnan(value), value))
    _merge_sums(parts, filled, into)


def _merge_strings(parts: Sequence[Any], filled: Sequence[Any], into: Any) -> None:
    # A text too long for its exact bound has only a truncated one, on the safe side.
    lows = [_text_bound(part, "minimum", "lower_bound") for part in filled]
    highs = [_text_bound(part, "maximum", "upper_bound") for part in filled]
    if lows and all(low is not None for low in lows):
        value, is_exact = min(low for low in lows if low is not None)
        setattr(into, "minimum" if is_exact else "lower_bound", value)
    if highs and all(high is not None for high in highs):
        value, is_exact = max(high for high in highs if high is not None)
        setattr(into, "maximum" if is_exact else "upper_bound", value)
    _merge_sums(parts, filled, into)


def _text_bound(part: Any, exact: str, truncated: str) -> tuple[bytes, bool] | None:
    if part.HasField(exact):
        return getattr(part, exact), True
    if part.HasField(truncated):
        return getattr(part, truncated), False
    return None


def _merge_buckets(parts: Sequence[Any], _filled: Sequence[Any], into: Any) -> None:
    # A count of nothing is 0: ORC's Java reader fails at the statistics of a file without one.
    width = max(1, *(len(part.count) for part in parts))
    into.count.extend(
        sum(part.count[at] if at < len(part.count) else 0 for part in parts) for at in range(width)
    )


def _merge_decimals(parts: Sequence[Any], filled: Sequence[Any], into: Any) -> None:
    _merge_bounds(parts, filled, into, key=lambda text: Decimal(text.decode()))


def _merge_timestamps(parts: Sequence[Any], filled: Sequence[Any], into: Any) -> None:
    # Milliseconds only: the nanoseconds beside them belong to one bound each and are not needed.
    _merge_bounds(parts, filled, into)
    if filled and all(
        part.HasField("minimum_utc") and part.HasField("maximum_utc") for part in filled
    ):
        into.minimum_utc = min(part.minimum_utc for part in filled)
        into.maximum_utc = max(part.maximum_utc for part in filled)


def _merge_collections(parts: Sequence[Any], filled: Sequence[Any], into: Any) -> None:
    if filled:
        into.min_children = min(part.min_children for part in filled)
        into.max_children = max(part.max_children for part in filled)
    into.total_children = sum(part.total_children for part in parts)


_BOUNDED: Final = frozenset(
    {
        "int_statistics",
        "double_statistics",
        "string_statistics",
        "decimal_statistics",
        "date_statistics",
        "timestamp_statistics",
    }
)
_MERGERS: Final[dict[str, Callable[[Sequence[Any], Sequence[Any], Any], None]]] = {
    "int_statistics": _merge_integers,
    "double_statistics": _merge_doubles,
    "string_statistics": _merge_strings,
    "bucket_statistics": _merge_buckets,
    "decimal_statistics": _merge_decimals,
    "date_statistics": _merge_bounds,
    "binary_statistics": _merge_sums,
    "timestamp_statistics": _merge_timestamps,
    "collection_statistics": _merge_collections,
}
