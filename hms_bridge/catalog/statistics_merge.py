"""Statistics of rows together: of new rows and old ones, and of several partitions. Pure.

As a Hive with its default settings: numbers of distinct values are the larger of two, because bit
vectors are not read back (metastore.stats.fetch.bitvector, .kll). A merged column keeps the bit
vector and histogram of the newer rows (Hive: ColumnStatsMergerFactory for columnstats.merge.*,
MetaStoreDirectSql.aggrStatsUseDB; docs/hive/metastore.md §27).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeVar

from hms_bridge.model.statistics import Bound, ColumnStatistics

_N = TypeVar("_N", int, float)

_NUMBER_MAX = 2**63 - 1
_NUMBERS = (
    "low", "high", "null_count", "distinct_count", "length_max", "true_count", "false_count",
)  # fmt: skip


def merged(new: ColumnStatistics, old: ColumnStatistics | None) -> ColumnStatistics:
    """Of new rows and those that were there; as ``new`` where the column had other values."""
    if old is None or old.kind is not new.kind:
        return new
    together = replace(
        new,
        low=_lowest((new.low, old.low)),
        high=_highest((new.high, old.high)),
        null_count=new.null_count + old.null_count,
        distinct_count=_largest((new.distinct_count, old.distinct_count)),
        average_length=_largest((new.average_length, old.average_length)),
        length_max=_largest((new.length_max, old.length_max)),
        true_count=_sum((new.true_count, old.true_count)),
        false_count=_sum((new.false_count, old.false_count)),
    )
    return _fitting(together)


def all_merged(
    new: Iterable[ColumnStatistics], old: Iterable[ColumnStatistics]
) -> tuple[ColumnStatistics, ...]:
    """Of each column of ``new``."""
    known = {column.column: column for column in old}
    return tuple(merged(column, known.get(column.column)) for column in new)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedStatistics:
    """Statistics of a column in one of the partitions asked for, and its place among them."""

    place: int
    column: ColumnStatistics


def aggregated(known: Sequence[PlacedStatistics], partition_count: int) -> ColumnStatistics:
    """Of a column in all of ``partition_count`` partitions, where some have none.

    What is missing is extrapolated along the order of the partitions, as Hive does from two known
    ones on (LinearExtrapolatePartStatus.extrapolate; docs/hive/metastore.md §27).
    """
    columns = [placed.column for placed in known]
    whole = replace(
        columns[0],
        low=_lowest([column.low for column in columns]),
        high=_highest([column.high for column in columns]),
        null_count=sum(column.null_count for column in columns),
        distinct_count=_largest([column.distinct_count for column in columns]),
        average_length=_largest([column.average_length for column in columns]),
        length_max=_largest([column.length_max for column in columns]),
        true_count=_sum([column.true_count for column in columns]),
        false_count=_sum([column.false_count for column in columns]),
        bit_vector=None,
        histogram=None,
    )
    if len(known) < 2 or len(known) == partition_count:
        return _fitting(whole)
    scale = _Scale(known=len(known), wanted=partition_count)
    line = _Line(known, partition_count - 1)
    scaled = replace(
        whole,
        low=line.extrapolated(lambda column: column.low, is_highest=False),
        high=line.extrapolated(lambda column: column.high, is_highest=True),
        null_count=scale.up(whole.null_count) or 0,
        distinct_count=line.count(lambda column: column.distinct_count),
        average_length=line.length(lambda column: column.average_length),
        length_max=line.count(lambda column: column.length_max),
        true_count=scale.up(whole.true_count),
        false_count=scale.up(whole.false_count),
    )
    return _fitting(scaled)


def _fitting(column: ColumnStatistics) -> ColumnStatistics:
    """Numbers that leave 64 bits end where those do: neither database nor wire has more."""
    numbers: dict[str, Any] = {
        name: max(-_NUMBER_MAX - 1, min(_NUMBER_MAX, value))
        for name in _NUMBERS
        if isinstance(value := getattr(column, name), int)
    }
    return replace(column, **numbers)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scale:
    known: int
    wanted: int

    def up(self, total: int | None) -> int | None:
        return None if total is None else total // self.known * self.wanted


_Value = Callable[[ColumnStatistics], Bound | None]


class _Line:
    """The line through the partitions with the lowest and the highest value of something."""

    def __init__(self, known: Sequence[PlacedStatistics], last_place: int) -> None:
        self._found = known
        self._last_place = last_place

    def count(self, value: _Value) -> int | None:
        highest = self.extrapolated(value, is_highest=True)
        return None if highest is None else int(highest)

    def length(self, value: _Value) -> float | None:
        highest = self.extrapolated(value, is_highest=True)
        return None if highest is None else float(highest)

    def extrapolated(self, value: _Value, *, is_highest: bool) -> Bound | None:
        """The value at the end of the line that is the higher, or the lower."""
        known = [
            (_number(bound), placed.place)
            for placed in self._found
            if (bound := value(placed.column)) is not None
        ]
        if len(known) < len(self._found):
            return None
        (low, low_place), (high, high_place) = min(known), max(known, key=lambda pair: pair[0])
        if low_place == high_place:
            return _text(low)
        rises = low_place < high_place
        steps = abs(high_place - low_place)
        if is_highest:
            distance = self._last_place - low_place if rises else low_place
            return _text(low + _part((high - low) * distance, steps))
        distance = high_place if rises else self._last_place - high_place
        return _text(high - _part((high - low) * distance, steps))


def _part(whole: Any, steps: int) -> Any:
    return whole // steps if isinstance(whole, int) else whole / steps


def _number(bound: Bound) -> Any:
    """An int, a float, or a Decimal: bounds of one column are of one of them."""
    return Decimal(bound) if isinstance(bound, str) else bound


def _text(number: Any) -> Bound:
    bound: Bound = str(number) if isinstance(number, Decimal) else number
    return bound


def _lowest(bounds: Iterable[Bound | None]) -> Bound | None:
    return min((bound for bound in bounds if bound is not None), key=_number, default=None)


def _highest(bounds: Iterable[Bound | None]) -> Bound | None:
    return max((bound for bound in bounds if bound is not None), key=_number, default=None)


def _largest(numbers: Iterable[_N | None]) -> _N | None:
    return max((number for number in numbers if number is not None), default=None)


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
