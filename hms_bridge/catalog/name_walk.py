"""Names of partitions read from where a condition can select some: a walk over first values, from
one to the next by the index of names, past all names that share them.

On PostgreSQL and SQLite a recursive statement walks over all values of a key at once; elsewhere
each step is a statement, as MariaDB does not look into an index from where a row of another
statement says. Either goes by bytes, in the order of which an index is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    ScalarSelect,
    Select,
    String,
    Text,
    and_,
    bindparam,
    cast,
    func,
    literal_column,
    or_,
    select,
    union_all,
)

from hms_bridge.backend.batches import given_pairs, texts_text
from hms_bridge.backend.dialect import is_mysql, is_postgresql
from hms_bridge.backend.driver_cursor import Come
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.prepared_text import Answer
from hms_bridge.backend.schema.catalog_tables import PARTITIONS
from hms_bridge.catalog.name_ranges import (
    NameRange,
    Narrowing,
    Stretch,
    WalkLimits,
    beginning_of,
    below,
    bounded,
    judged,
    left_of,
    levels_to_look_at,
    together,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NameWalk:
    """Over the names of ``whole``, a table or those below a beginning.

    ``is_of_one_moment``: whether all statements of the transaction see the same rows. If not, what
    was committed between two of them might be seen in part, as by no single statement. So there it
    is one statement that reads names: all but those below a beginning that is ruled out, which it
    is at any moment. For that PostgreSQL is needed, which takes any number of ranges at once.
    """

    connection: Connection
    table_id: int
    whole: Stretch
    keys: int
    narrowing: Narrowing
    limits: WalkLimits
    is_of_one_moment: bool
    ranges: Sequence[NameRange] = ()
    """Outside of these it selects nothing; not known if there are none."""

    def find(self, *, is_rest_wanted: bool = True) -> Sequence[Sequence[Any]] | None:
        """Names and keys of those that the condition may select, and perhaps of others. None: a
        walk saves nothing, and what there is, or all but the first ones that have been read
        already, is better read in another way (if not ``is_rest_wanted``, in any case)."""
        sample = self._first_names(self.whole.range, self.limits.names + 1)
        if len(sample) <= self.limits.names:
            return sample
        names = [name for name, _ in sample]
        levels = levels_to_look_at(self.narrowing, self.whole.level, self.keys, names, self.limits)
        is_walked = bool(levels or self.ranges) and self._is_in_order()
        rows = self._walked(sample, levels) if is_walked else None
        if rows is not None or not (self.is_of_one_moment and is_rest_wanted):
            return rows
        return [*sample[:-1], *self._read([NameRange(names[-1], self.whole.range.behind)])]

    def _walked(
        self, sample: Sequence[Sequence[Any]], levels: Sequence[int]
    ) -> Sequence[Sequence[Any]] | None:
        whole, kept = self.whole, []
        if self.ranges:
            within = NameRange(self.ranges[0].first, self.ranges[-1].behind)
            # What the next value bounds is taken as decided by it.
            levels = [level for level in levels if level > whole.level + 1]
            stretches = self._stretches(bounded(whole, self.ranges), levels)
        else:
            within = whole.range
            if self.is_of_one_moment:
                beginning = beginning_of(sample[-1][0], levels[0])
                if beginning is None:
                    return None
                within = NameRange(beginning, within.behind)
                kept = [row for row in sample if not row[0].startswith(beginning)]
            stretches = self._stretches([replace(whole, range=within)], levels)
        if stretches is None:
            return None
        left = left_of(within, stretches, with_gaps=not self.is_of_one_moment)
        return [*kept, *self._read(left)]

    def _stretches(
        self, stretches: Sequence[Stretch], levels: Sequence[int]
    ) -> Sequence[Stretch] | None:
        """What is to be read and what is not, as far as these numbers of values say. None if there
        are names with fewer."""
        budget = self.limits.beginnings // (10 if is_mysql(self.connection) else 1)
        known = self.whole.level
        for level in levels:
            parents = [s for s in stretches if not s.is_out and s.level == known]
            # Of the ranges that a bound gives nearly all are empty.
            count = budget if known == self.whole.level else budget // max(len(parents), 1)
            if not parents or count < 1 or len(parents) > self.limits.parents:
                break
            asked = {parent: self._beginnings(parent, level, count) for parent in parents}
            next_ones: list[Stretch] = []
            for stretch in stretches:
                if stretch not in asked:
                    next_ones.append(stretch)
                    continue
                names = [name for name, *_ in asked[stretch].rows]
                is_whole = len(names) < count
                children = judged(stretch, names, level, self.narrowing, is_whole=is_whole)
                if children is None:
                    return None
                next_ones += children
                budget -= len(names)
            stretches, known = next_ones, level
        return stretches

    def _beginnings(self, parent: Stretch, level: int, count: int) -> Answer:
        """The first names below each beginning with so many values, of ``count`` such ones."""
        if is_mysql(self.connection):
            return self._steps(parent, level, count)
        is_bounded = parent.range.behind is not None
        sql = _beginnings(level - parent.level, is_bounded, is_postgresql(self.connection))
        values = {"parent": parent.beginning, "steps": count}
        return sql.read_later(self.connection, **_values(self.table_id, parent.range), **values)

    def _steps(self, parent: Stretch, level: int, count: int) -> Answer:
        rows: list[tuple[Any, ...]] = []
        within = parent.range
        while len(rows) < count and (first := self._first_names(within, 1)):
            rows += first
            beginning = beginning_of(first[0][0], level)
            if beginning is None:
                break
            within = NameRange(below(beginning).behind or "", parent.range.behind)
        return Come(rows, len(rows))

    def _first_names(self, within: NameRange, count: int) -> Sequence[tuple[Any, ...]]:
        sql = _first_names(count, within.behind is not None, is_postgresql(self.connection))
        return sql.all(self.connection, **_values(self.table_id, within))

    def _read(self, ranges: Sequence[NameRange]) -> Sequence[Sequence[Any]]:
        if len(ranges) > 1 and is_postgresql(self.connection):
            return names_at_once(self.connection, self.table_id, ranges)
        return names_in(self.connection, self.table_id, together(ranges, self.limits.ranges))

    def _is_in_order(self) -> bool:
        """Whether an index has names by their bytes. PostgreSQL may lack ours, in a database that
        is only Hive's, and would go through all names for each step; somebody may have given
        MySQL's column another order than Hive does, in which "a" is "A"."""
        if is_mysql(self.connection):
            (collation,) = _COLLATION.first(self.connection) or ("",)
            return str(collation).endswith("_bin")
        return not is_postgresql(self.connection) or _INDEX.first(self.connection) != (None,)


def names_in(
    connection: Connection, table_id: int, ranges: Sequence[NameRange]
) -> Sequence[Sequence[Any]]:
    """Names and keys of those in each of these ranges."""
    answers = [
        _names_in(within.behind is not None, is_postgresql(connection)).read_later(
            connection, **_values(table_id, within)
        )
        for within in ranges
    ]
    return [row for answer in answers for row in answer.rows]


def names_at_once(
    connection: Connection, table_id: int, ranges: Sequence[NameRange]
) -> Sequence[Sequence[Any]]:
    """The same of more than one, by one statement: as of one moment wherever it stands. Only the
    last may have no end, and on PostgreSQL only."""
    if not is_postgresql(connection):
        within = [and_(_NAME >= r.first, _NAME < r.behind) for r in ranges]
        query = NAMED.where(OF_TABLE, or_(*within))
        return connection.execute(query, {"table_id": table_id}).all()
    bounds = [(r.first, r.behind) for r in ranges if r.behind is not None]
    last = ranges[-1]
    firsts, behinds = zip(*bounds, strict=True)
    values: dict[str, Any] = {"firsts": texts_text(firsts), "behinds": texts_text(behinds)}
    if last.behind is None:
        values["first"] = last.first
    return _names_in_ranges(last.behind is None).all(connection, table_id=table_id, **values)


def _values(table_id: int, within: NameRange) -> Mapping[str, Any]:
    values: dict[str, Any] = {"table_id": table_id, "first": within.first}
    if within.behind is not None:
        values["behind"] = within.behind
    return values


OF_TABLE = PARTITIONS.c.TBL_ID == bindparam("table_id", type_=BigInteger)
_NAME = PARTITIONS.c.PART_NAME
NAMED = select(_NAME, PARTITIONS.c.PART_ID)
_FIRST, _BEHIND = bindparam("first", type_=String), bindparam("behind", type_=String)
_COLLATION = FixedSql(select(func.collation(_NAME)).limit(literal_column("1")))
_BINDS_AS_CONCATENATION = 20
"""What an operator of PostgreSQL's own does, so that a text made beside it is put in brackets."""
_INDEX = FixedSql(
    select(cast(func.to_regclass(literal_column("'\"HMSB_PARTITIONS_BY_NAME\"'")), Text))
)


def _is_from(text: ColumnElement[str], *, is_on_postgresql: bool) -> ColumnElement[bool]:
    """By bytes, which an index is in the order of; PostgreSQL's own is a language's."""
    if is_on_postgresql:
        return _NAME.op("~>=~", _BINDS_AS_CONCATENATION, is_comparison=True)(text)
    return _NAME >= text


def _is_before(text: ColumnElement[str], *, is_on_postgresql: bool) -> ColumnElement[bool]:
    if is_on_postgresql:
        return _NAME.op("~<~", _BINDS_AS_CONCATENATION, is_comparison=True)(text)
    return _NAME < text


def _within(
    query: Select[Any], first: ColumnElement[str], *, is_bounded: bool, is_on_postgresql: bool
) -> Select[Any]:
    query = query.where(OF_TABLE, _is_from(first, is_on_postgresql=is_on_postgresql))
    if is_bounded:
        query = query.where(_is_before(_BEHIND, is_on_postgresql=is_on_postgresql))
    return query


def _firsts(query: Select[Any], count: int, *, is_on_postgresql: bool) -> Select[Any]:
    order = _NAME.op("USING")(literal_column("~<~")) if is_on_postgresql else _NAME
    # The number is part of the text: to a plan for any number it would be a tenth of all rows.
    return query.order_by(order).limit(literal_column(str(count)))


@cache
def _names_in(is_bounded: bool, is_on_postgresql: bool) -> FixedSql:
    return FixedSql(
        _within(NAMED, _FIRST, is_bounded=is_bounded, is_on_postgresql=is_on_postgresql)
    )


@cache
def _first_names(count: int, is_bounded: bool, is_on_postgresql: bool) -> FixedSql:
    query = _within(NAMED, _FIRST, is_bounded=is_bounded, is_on_postgresql=is_on_postgresql)
    return FixedSql(_firsts(query, count, is_on_postgresql=is_on_postgresql))


@cache
def _names_in_ranges(has_last: bool) -> FixedSql:
    """On PostgreSQL. The last range may have no end."""
    given = given_pairs("firsts", "behinds")
    bounds = (
        _is_from(given.c.firsts, is_on_postgresql=True),
        _is_before(given.c.behinds, is_on_postgresql=True),
    )
    bounded = NAMED.join_from(given, PARTITIONS, and_(OF_TABLE, *bounds))
    if not has_last:
        return FixedSql(bounded)
    last = _within(NAMED, _FIRST, is_bounded=False, is_on_postgresql=True)
    return FixedSql(union_all(bounded, last))


@cache
def _beginnings(count: int, is_bounded: bool, is_on_postgresql: bool) -> FixedSql:
    """The first name below each beginning that has ``count`` values more than a parent, in order.
    It ends at a name that has no more values."""

    def first_from(text: ColumnElement[str]) -> ScalarSelect[str]:
        query = _within(
            select(_NAME), text, is_bounded=is_bounded, is_on_postgresql=is_on_postgresql
        )
        return _firsts(query, 1, is_on_postgresql=is_on_postgresql).scalar_subquery()

    one = literal_column("1", Integer)
    firsts = select(first_from(_FIRST).label("name"), one.label("step")).cte(
        "firsts", recursive=True
    )
    parent_length = func.length(bindparam("parent", type_=String))
    rest = func.substr(firsts.c.name, parent_length + one)
    find = func.strpos if is_on_postgresql else func.instr
    slash: ColumnElement[int] = find(rest, literal_column("'/'"))
    for _ in range(count - 1):
        slash = slash + find(func.substr(rest, slash + one), literal_column("'/'"))
    until_slash = func.substr(firsts.c.name, one, parent_length + slash - one, type_=String)
    behind = until_slash + literal_column("'0'", String)
    step = select(first_from(behind), firsts.c.step + one).where(
        firsts.c.name.is_not(None), slash > 0, firsts.c.step < bindparam("steps", type_=Integer)
    )
    firsts = firsts.union_all(step)
    return FixedSql(select(firsts.c.name).where(firsts.c.name.is_not(None)))
