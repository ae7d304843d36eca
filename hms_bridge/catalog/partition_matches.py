"""Which partitions of a table a condition selects, by their names; none is loaded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product, takewhile
from math import prod
from typing import Any, Protocol

from sqlalchemy import (
    Connection,
    ScalarSelect,
    String,
    and_,
    bindparam,
    select,
)

from hms_bridge.backend.dialect import is_mysql
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.listing_sql import ListingSql
from hms_bridge.backend.schema.catalog_tables import PARTITION_KEY_VALS, PARTITIONS
from hms_bridge.backend.text_keyed_sql import TextKeyedSql
from hms_bridge.catalog.name_ranges import (
    TABLE,
    NameRange,
    Narrowing,
    Stretch,
    WalkLimits,
    below,
    values_in,
)
from hms_bridge.catalog.name_walk import NAMED, OF_TABLE, NameWalk, names_at_once, names_in
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.catalog.text_bounds import Bounds, names_between
from hms_bridge.model.partition_name import escape, partition_name

REQUIRED_VALUES_MAX = 500
"""More are not sent to the database, which takes a bounded number of parameters."""
LIMITS = WalkLimits()

_ALL = FixedSql(NAMED.where(OF_TABLE))
_OF_NAMES = TextKeyedSql(
    PARTITIONS.c.PART_NAME,
    lambda is_meant: NAMED.where(OF_TABLE, is_meant),
)


def ids_of_names(
    connection: Connection, stored: StoredTable, names: Collection[str]
) -> Mapping[str, int]:
    """Keys of those partitions that exist, by name."""
    wanted = frozenset(names)
    rows = alike(connection, stored, names)
    return {name: key for name, key in rows if name in wanted}


def alike(
    connection: Connection, stored: StoredTable, names: Collection[str]
) -> Sequence[tuple[Any, ...]]:
    """Names and keys of those that the database takes for one of these: on MySQL also one that has
    other blanks at its end."""
    return _OF_NAMES.all(connection, list(dict.fromkeys(names)), table_id=stored.id)


class Requirement(Narrowing, Protocol):
    """What the database can do of a condition (BoundFilter, BoundExpression)."""

    @property
    def required_values(self) -> Mapping[int, frozenset[str]]:
        """Places whose text is one of these in everything that is selected."""
        ...

    @property
    def bounds(self) -> Bounds:
        """Between which texts what is selected lies."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Matches:
    """Partitions that a condition selects: names and keys, sorted by name."""

    selected: Sequence[tuple[str, int]]
    is_uncertain: bool
    """Whether some of them may match or not."""


def matches(
    connection: Connection,
    stored: StoredTable,
    verdict: Callable[[Sequence[str]], bool | None],
    required: Requirement,
    lock: RowLock = RowLock.NONE,
    limits: WalkLimits = LIMITS,
) -> Matches:
    """What a condition selects, and what it perhaps selects (verdict None).

    The database narrows the names down by the values that the condition requires; the condition
    then reads the values out of each name, so nothing is loaded yet.

    It may take several statements. Who asks without a ``lock`` reads as of one moment
    (``reads_whole``: a snapshot on PostgreSQL and MySQL; on SQLite every transaction does), so all
    of them see the same partitions. Who will lock some, in a transaction that writes, does not on
    PostgreSQL, and perhaps not on MySQL: there names are read by one statement (:class:`NameWalk`),
    so that of partitions that come together meanwhile all are seen, or none.
    """
    selected, is_uncertain = [], False
    for name, key in _Narrowed(connection, stored, required, lock, limits).names():
        is_chosen = verdict(values_in(name))
        is_uncertain |= is_chosen is None
        if is_chosen is not False:
            selected.append((name, key))
    return Matches(selected=sorted(selected), is_uncertain=is_uncertain)


@dataclass(frozen=True, slots=True)
class _Narrowed:
    """Names and keys of those that a condition may select, and perhaps of others."""

    connection: Connection
    stored: StoredTable
    required: Requirement
    lock: RowLock
    limits: WalkLimits

    def names(self) -> Iterable[Sequence[Any]]:
        """With a value at every place they have a name, and with values at the first ones a
        beginning of it, by which they are found among any number of others."""
        columns = self.stored.table.partition_columns
        values = self._texts()
        led = list(takewhile(values.__contains__, range(len(columns))))
        if not led or prod(len(values[place]) for place in led) > REQUIRED_VALUES_MAX:
            rows = self._walked(Stretch(TABLE, "", 0), has_other_way=bool(values))
            return self._with(values) if rows is None else rows
        chosen = product(*(values[place] for place in led))
        names = [partition_name(columns[: len(led)], v) for v in chosen]
        if len(led) == len(columns):
            return ids_of_names(self.connection, self.stored, names).items()
        ranges = [below(f"{name}/") for name in names]
        if len(names) == 1:
            whole = Stretch(ranges[0], f"{names[0]}/", len(led))
            if (rows := self._walked(whole, has_other_way=False)) is not None:
                return rows
        is_one = self._is_of_one_moment() or len(ranges) < 2
        return (names_in if is_one else names_at_once)(self.connection, self.stored.id, ranges)

    def _is_of_one_moment(self) -> bool:
        """Whether all statements see the same partitions."""
        return self.lock is RowLock.NONE or self.connection.dialect.name == "sqlite"

    def _texts(self) -> Mapping[int, Sequence[str]]:
        return {
            place: sorted(texts)
            for place, texts in self.required.required_values.items()
            if len(texts) <= REQUIRED_VALUES_MAX
        }

    def _walked(self, whole: Stretch, *, has_other_way: bool) -> Sequence[Sequence[Any]] | None:
        columns = self.stored.table.partition_columns
        is_of_one_moment = self._is_of_one_moment()
        ranges: Sequence[NameRange] = ()
        if (bounds := self.required.bounds.get(whole.level)) is not None:
            key = escape(columns[whole.level].name.lower())
            ranges = names_between(f"{whole.beginning}{key}=", bounds)
        places = range(whole.level, len(columns) - 1)
        if (is_mysql(self.connection) and not is_of_one_moment) or not (
            ranges or self.required.places.intersection(places)
        ):
            return None
        walk = NameWalk(
            connection=self.connection,
            table_id=self.stored.id,
            whole=whole,
            keys=len(columns),
            narrowing=self.required,
            limits=self.limits,
            is_of_one_moment=is_of_one_moment,
            ranges=ranges,
        )
        return walk.find(is_rest_wanted=not has_other_way)

    def _with(self, values: Mapping[int, Sequence[str]]) -> Iterable[Sequence[Any]]:
        """Those that have one of these values at each place."""
        if not values:
            return _ALL.all(self.connection, table_id=self.stored.id)
        if all(len(texts) == 1 for texts in values.values()):
            given = {f"value_{place}": text for place, (text,) in values.items()}
            sql = _with_values(tuple(values))
            return sql.all(self.connection, table_id=self.stored.id, **given)
        return self.connection.execute(
            NAMED.where(
                PARTITIONS.c.TBL_ID == self.stored.id,
                *(_value_at(place).in_(texts) for place, texts in values.items()),
            )
        )


@cache
def _with_values(places: tuple[int, ...]) -> ListingSql:
    """A value at each place: nearly all conditions are such."""
    return ListingSql(
        lambda _: NAMED.where(
            OF_TABLE,
            *(_value_at(place) == bindparam(f"value_{place}", type_=String) for place in places),
        )
    )


def _value_at(place: int) -> ScalarSelect[Any]:
    """A value of each partition. Not a join: a database without statistics (PostgreSQL has none of
    what was just loaded) goes through all values of all tables for each partition then."""
    values = PARTITION_KEY_VALS.c
    is_value = and_(values.PART_ID == PARTITIONS.c.PART_ID, values.INTEGER_IDX == place)
    return select(values.PART_KEY_VAL).where(is_value).correlate(PARTITIONS).scalar_subquery()
