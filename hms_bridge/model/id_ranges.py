"""Ids in a row, kept as the two ends of each row.

A client writes `1-9223372036854775807` in twenty letters, and no machine holds so many numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar, cast, overload

IdT = TypeVar("IdT", bound=int)


@dataclass(frozen=True, slots=True)
class IdRanges(Sequence[IdT], Generic[IdT]):
    """A sorted sequence of ids from 1 on. `firsts` and `lasts` are the ends of its rows, which
    neither touch nor overlap; `counts` says how many ids the rows up to each have together."""

    firsts: tuple[int, ...]
    lasts: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> IdRanges[IdT]:
        """Of (first, last), in any order. A range that ends before it begins has no ids, as for
        Hive; numbers below 1 are no ids."""
        firsts: list[int] = []
        lasts: list[int] = []
        for first, last in sorted((max(first, 1), last) for first, last in ranges):
            if last < first:
                continue
            if lasts and first <= lasts[-1] + 1:
                lasts[-1] = max(lasts[-1], last)
            else:
                firsts.append(first)
                lasts.append(last)
        lengths = (last - first + 1 for first, last in zip(firsts, lasts, strict=True))
        return cls(tuple(firsts), tuple(lasts), tuple(accumulate(lengths)))

    def __len__(self) -> int:
        return self.counts[-1] if self.counts else 0

    @overload
    def __getitem__(self, index: int) -> IdT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[IdT, ...]: ...
    def __getitem__(self, index: int | slice) -> IdT | tuple[IdT, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        position = range(len(self))[index]
        row = bisect_right(self.counts, position)
        behind = self.counts[row] - position - 1
        return cast(IdT, self.lasts[row] - behind)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        row = bisect_right(self.firsts, number) - 1
        return row >= 0 and number <= self.lasts[row]
