"""Which parts of a table's partition names a condition can select from: decided by their first
values, before the names are read.

All names with the same first values stand together in the order of their bytes: from ``a=1/`` to
before ``a=10``, as "0" follows "/". So what is ruled out by these values is a stretch of names, and
what is left is read as ranges. Which values there are is found out, not thought up, and they are
read as those of a single partition are: however a number or a date is written, it is judged alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from hms_bridge.model.partition_name import unescape

_BEHIND_SLASH = chr(ord("/") + 1)


class Narrowing(Protocol):
    """What is known of a condition before any name is read (BoundFilter, BoundExpression)."""

    @property
    def places(self) -> frozenset[int]:
        """Places of values that it looks at."""
        ...

    @property
    def rules_out(self) -> Callable[[Sequence[str]], bool]:
        """Whether it is False for all that have these first values."""
        ...


@dataclass(frozen=True, slots=True)
class WalkLimits:
    """When it is worth while to look for first values, and for how many."""

    names: int = 1000
    """So many are read without looking."""
    names_of_each: int = 4
    """First values that fewer names share, of those read, are not looked for: it takes as long to
    find them as to read the names."""
    beginnings: int = 5000
    """So many are looked at; where each takes a statement, a tenth. What comes after is read."""
    parents: int = 300
    """Among so many the next key's values are looked for; each takes a statement."""
    ranges: int = 1000
    """So many are read where each takes a statement; with more, some together."""


@dataclass(frozen=True, slots=True)
class NameRange:
    """Names from ``first`` to before ``behind``; without these, from the first one, to the last."""

    first: str = ""
    behind: str | None = None


TABLE = NameRange()


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of names. ``beginning`` is that which all of them have, with ``level`` values."""

    range: NameRange
    beginning: str
    level: int
    is_out: bool = False
    """Whether the condition selects none of them."""


def below(beginning: str) -> NameRange:
    """Names that go on after this, which ends with a slash."""
    return NameRange(beginning, beginning[:-1] + _BEHIND_SLASH)


def beginning_of(name: str, level: int) -> str | None:
    """So many values of a name, as they stand there, with the slash; None if it has no more."""
    end = 0
    for _ in range(level):
        end = name.find("/", end) + 1
        if not end:
            return None
    return name[:end]


def values_in(name: str) -> list[str]:
    """The values in a name, or in its beginning without the last slash."""
    values = [part.partition("=")[2] for part in name.split("/")]
    return [unescape(value) for value in values] if "%" in name else values


def levels_to_look_at(
    narrowing: Narrowing, known: int, keys: int, names: Sequence[str], limits: WalkLimits
) -> Sequence[int]:
    """How many first values to look for, one after the other: behind each key that the condition
    looks at, if enough of these names share them. ``known``: how many are the same in all."""
    wanted = sorted(place + 1 for place in narrowing.places if known <= place < keys - 1)
    shared = len(names) / limits.names_of_each
    return [level for level in wanted if len({beginning_of(n, level) for n in names}) <= shared]


def bounded(parent: Stretch, ranges: Sequence[NameRange]) -> Sequence[Stretch]:
    """The stretches of a parent if all that is selected stands in these ranges."""
    stretches = [replace(parent, range=ranges[0])]
    for before, after in pairwise(ranges):
        between = NameRange(str(before.behind), after.first)
        stretches.append(replace(parent, range=between, is_out=True))
        stretches.append(replace(parent, range=after))
    return stretches


def judged(
    parent: Stretch, names: Sequence[str], level: int, narrowing: Narrowing, *, is_whole: bool
) -> Sequence[Stretch] | None:
    """The stretches of a parent, of which each of these names is the first one. ``is_whole``:
    whether these are all; else the rest is one more. None if one has not so many values."""
    stretches = []
    for name in names:
        beginning = beginning_of(name, level)
        if beginning is None:
            return None
        is_out = narrowing.rules_out(values_in(beginning[:-1]))
        stretches.append(Stretch(below(beginning), beginning, level, is_out))
    if not is_whole and stretches:
        rest = NameRange(str(stretches[-1].range.behind), parent.range.behind)
        stretches.append(Stretch(rest, parent.beginning, parent.level))
    return stretches


def left_of(
    whole: NameRange, stretches: Sequence[Stretch], *, with_gaps: bool
) -> Sequence[NameRange]:
    """What is to be read: ranges without the stretches that are out. ``with_gaps``: also where
    nothing was between two of these, as something may have come meanwhile."""
    left = []
    first, has_names = whole.first, False
    for stretch in stretches:
        if not stretch.is_out:
            has_names = True
            continue
        if has_names or with_gaps:
            left.append(NameRange(first, stretch.range.first))
        first, has_names = str(stretch.range.behind), False
    if has_names or with_gaps:
        left.append(NameRange(first, whole.behind))
    return left


def together(ranges: Sequence[NameRange], count: int) -> Sequence[NameRange]:
    """The same in at most so many, with what is between those that are read together."""
    size = -(-len(ranges) // count)
    if size <= 1:
        return ranges
    pieces = [ranges[start : start + size] for start in range(0, len(ranges), size)]
    return [NameRange(piece[0].first, piece[-1].behind) for piece in pieces]
