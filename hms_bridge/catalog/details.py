"""The many small rows that describe tables, partitions and storage, read with two statements.

A table is one row of TBLS and about ten tables of parameters, columns and lists. Asking each of
them would make get_table, which clients call before nearly everything else, ten round trips; so
all parameters come by one UNION ALL, and all ordered lists by another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from operator import itemgetter
from typing import Any

import sqlalchemy
from sqlalchemy import (
    BigInteger,
    Connection,
    Select,
    String,
    Table,
    Text,
    cast,
    func,
    literal_column,
    null,
    select,
    union_all,
)

from hms_bridge.backend.batches import batches, is_among_many, keys_text
from hms_bridge.backend.dialect import is_postgresql
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.listing_sql import IsOneOf, Listed, ListingSql
from hms_bridge.backend.schema import catalog_tables as t
from hms_bridge.model.catalog import Column, SortColumn

ParameterRows = dict[int, dict[str, str]]


@dataclass(kw_only=True, slots=True)
class Owners:
    """Whose details are wanted: keys of five kinds of rows."""

    tables: Collection[int] = ()
    partitions: Collection[int] = ()
    storages: Collection[int] = ()
    serdes: Collection[int] = ()
    column_lists: Collection[int] = ()


@dataclass(slots=True)
class Details:
    """What was found, by kind and then by key of the owner."""

    parameters: dict[str, ParameterRows] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    columns: dict[int, list[Column]] = field(default_factory=lambda: defaultdict(list))
    partition_columns: dict[int, list[Column]] = field(default_factory=lambda: defaultdict(list))
    partition_values: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    bucket_columns: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    sort_columns: dict[int, list[SortColumn]] = field(default_factory=lambda: defaultdict(list))
    skewed_columns: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))


def load_details(connection: Connection, owners: Owners) -> Details:
    """Everything that describes these rows."""
    details = Details()
    for keys in _pieces(owners):
        if len(keys.get("partitions", ())) > _FEW_PARTITIONS and is_postgresql(connection):
            _load_many(connection, keys, details)
            continue
        kinds = tuple(keys)
        parameters = _rows(connection, _parameter_query(kinds), keys, _PARAMETER_TABLES)
        lists = _rows(connection, _list_query(kinds), keys, _LISTED)
        _add_parameters(parameters(), details)
        _add_lists(lists(), details)
    return details


def _load_many(connection: Connection, keys: Mapping[str, Sequence[int]], details: Details) -> None:
    """As two statements would, of hundreds of partitions: there is a statement for what each of
    them has, which is narrower, and one for what nearly all have alike."""
    given = {kind: keys_text(some) for kind, some in keys.items()}
    kinds = tuple(kind for kind in keys if kind != "serdes")
    parameters, lists, values = (
        _ask(connection, query, given)
        for query in (_many_parameters(kinds), _many_lists(kinds), _VALUES)
    )
    if "serdes" in given:
        _add_alike(_ask(connection, _ALIKE_IN_SERDES, given)(), details.parameters["serdes"])
    _add_parameters(parameters(), details)
    _add_lists(lists(), details)
    for owner, _, value in sorted(values(), key=itemgetter(1)):
        details.partition_values[owner].append(value or "")


def _ask(
    connection: Connection, many: _Many | None, given: Mapping[str, str]
) -> Callable[[], Sequence[Any]]:
    if many is None:
        return tuple
    answer = many.query.read_later(connection, **{kind: given[kind] for kind in many.kinds})
    return lambda: answer.rows


def _rows(
    connection: Connection,
    query: ListingSql | None,
    given: Mapping[str, Sequence[int]],
    kinds: Container[str],
) -> Callable[[], Sequence[Any]]:
    """Asked with the keys of those kinds that the statement has parameters for."""
    if query is None:
        return tuple
    return query.later(connection, **{kind: given[kind] for kind in given if kind in kinds})


def _pieces(owners: Owners) -> Iterator[Mapping[str, Sequence[int]]]:
    """Some keys of each kind at a time; a kind without any, or without more, is left out."""
    sequences = {kind.name: list(batches(list(getattr(owners, kind.name)))) for kind in _KINDS}
    for place in range(max(map(len, sequences.values()))):
        yield {name: keys[place] for name, keys in sequences.items() if place < len(keys)}


_KINDS = fields(Owners)
_FEW_PARTITIONS = 100
"""Which two statements describe as soon as four."""

_PARAMETER_TABLES: dict[str, Table] = {
    "tables": t.TABLE_PARAMS,
    "partitions": t.PARTITION_PARAMS,
    "storages": t.SD_PARAMS,
    "serdes": t.SERDE_PARAMS,
}


@cache
def _parameter_query(kinds: tuple[str, ...]) -> ListingSql | None:
    if not any(kind in _PARAMETER_TABLES for kind in kinds):
        return None
    return ListingSql(lambda is_one_of: _parameters(kinds, is_one_of))


def _parameters(kinds: Collection[str], is_one_of: IsOneOf) -> Listed:
    return _together(
        [
            select(
                literal_column(f"'{kind}'").label("kind"),
                table.columns[0].label("owner"),
                table.c.PARAM_KEY.label("name"),
                table.c.PARAM_VALUE.label("value"),
            ).where(is_one_of(table.columns[0], kind))
            for kind, table in _PARAMETER_TABLES.items()
            if kind in kinds
        ]
    )


def _add_parameters(rows: Sequence[Any], details: Details) -> None:
    for kind, owner, name, value in rows:
        details.parameters[kind][owner][name] = value or ""


def _list_part(
    kind: str,
    owners: str,
    name: sqlalchemy.Column[Any],
    *,
    text: sqlalchemy.Column[Any] | None = None,
    comment: sqlalchemy.Column[Any] | None = None,
    number: sqlalchemy.Column[Any] | None = None,
) -> tuple[str, sqlalchemy.Column[Any], Select[Any]]:
    """Whose list, the column of the owner's key, and a statement for all: each entry has a row, its
    owner's key in the first column, its place in INTEGER_IDX."""
    nothing = cast(null(), String(4000))
    owner, place = name.table.columns[0], name.table.columns.INTEGER_IDX
    part = select(
        literal_column(f"'{kind}'").label("kind"),
        owner.label("owner"),
        cast(place, BigInteger).label("place"),
        name.label("name"),
        (nothing if text is None else text).label("text"),
        (nothing if comment is None else comment).label("comment"),
        (literal_column("0") if number is None else number).label("number"),
    )
    return owners, owner, part


_COLUMNS, _KEYS = t.COLUMNS_V2.c, t.PARTITION_KEYS.c
_LIST_PARTS = (
    _list_part(
        "column",
        "column_lists",
        _COLUMNS.COLUMN_NAME,
        text=_COLUMNS.TYPE_NAME,
        comment=_COLUMNS.COMMENT,
    ),
    _list_part("key", "tables", _KEYS.PKEY_NAME, text=_KEYS.PKEY_TYPE, comment=_KEYS.PKEY_COMMENT),
    _list_part("value", "partitions", t.PARTITION_KEY_VALS.c.PART_KEY_VAL),
    _list_part("bucket", "storages", t.BUCKETING_COLS.c.BUCKET_COL_NAME),
    _list_part("sort", "storages", t.SORT_COLS.c.COLUMN_NAME, number=t.SORT_COLS.c.ORDER),
    _list_part("skew", "storages", t.SKEWED_COL_NAMES.c.SKEWED_COL_NAME),
)


_LISTED = {owners for owners, _, _ in _LIST_PARTS}


@cache
def _list_query(kinds: tuple[str, ...]) -> ListingSql | None:
    if not any(kind in _LISTED for kind in kinds):
        return None
    return ListingSql(lambda is_one_of: _lists(kinds, is_one_of))


def _lists(kinds: Collection[str], is_one_of: IsOneOf) -> Listed:
    return _together(
        [
            part.where(is_one_of(owner, owners))
            for owners, owner, part in _LIST_PARTS
            if owners in kinds
        ]
    )


def _add_lists(rows: Sequence[Any], details: Details) -> None:
    for kind, owner, _, name, text, comment, number in sorted(rows, key=itemgetter(2)):
        if kind == "column":
            details.columns[owner].append(Column(name=name, type=text or "", comment=comment))
        elif kind == "key":
            column = Column(name=name, type=text, comment=comment)
            details.partition_columns[owner].append(column)
        elif kind == "value":
            details.partition_values[owner].append(name or "")
        elif kind == "bucket":
            details.bucket_columns[owner].append(name)
        elif kind == "sort":
            details.sort_columns[owner].append(SortColumn(name=name, order=int(number)))
        else:
            details.skewed_columns[owner].append(name)


def _together(parts: Sequence[Select[Any]]) -> Listed:
    return parts[0] if len(parts) == 1 else union_all(*parts)


@dataclass(frozen=True, slots=True)
class _Many:
    """A statement on PostgreSQL, for many keys of each of these kinds."""

    query: FixedSql
    kinds: Sequence[str]


@cache
def _many_parameters(kinds: tuple[str, ...]) -> _Many | None:
    asked = [kind for kind in kinds if kind in _PARAMETER_TABLES]
    return _Many(FixedSql(_parameters(asked, is_among_many)), asked) if asked else None


@cache
def _many_lists(kinds: tuple[str, ...]) -> _Many | None:
    asked = [kind for kind in kinds if kind in _LISTED and kind != "partitions"]
    return _Many(FixedSql(_lists(asked, is_among_many)), asked) if asked else None


_V = t.PARTITION_KEY_VALS.c
_VALUES = _Many(
    FixedSql(
        select(_V.PART_ID, _V.INTEGER_IDX, _V.PART_KEY_VAL).where(
            is_among_many(_V.PART_ID, "partitions")
        )
    ),
    ["partitions"],
)
_P = t.SERDE_PARAMS.c
_ALIKE_IN_SERDES = _Many(
    FixedSql(
        select(_P.PARAM_KEY, _P.PARAM_VALUE, func.string_agg(cast(_P.SERDE_ID, Text), ","))
        .where(is_among_many(_P.SERDE_ID, "serdes"))
        .group_by(_P.PARAM_KEY, _P.PARAM_VALUE)
    ),
    ["serdes"],
)


def _add_alike(rows: Sequence[Any], parameters: ParameterRows) -> None:
    """Names and values, and the keys of all that have them."""
    sets: dict[str, dict[str, str]] = defaultdict(dict)
    for name, value, owners in rows:
        sets[owners][name] = value or ""
    for owners, alike in sets.items():
        for owner in map(int, owners.split(",")):
            own = parameters.get(owner)
            parameters[owner] = alike if own is None else {**own, **alike}
