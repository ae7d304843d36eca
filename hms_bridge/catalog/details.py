"""The many small rows that describe tables, partitions and storage, read with two statements.

A table is one row of TBLS and about ten tables of parameters, columns and lists. Asking each of
them would make get_table, which clients call before nearly everything else, ten round trips; so
all parameters come by one UNION ALL, and all ordered lists by another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    Select,
    String,
    Table,
    bindparam,
    cast,
    literal_column,
    null,
    select,
    union_all,
)

from hms_bridge.backend.batches import batches
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
    for tables, partitions, storages, serdes, column_lists in _pieces(owners):
        keys = {
            "tables": tables,
            "partitions": partitions,
            "storages": storages,
            "serdes": serdes,
            "column_lists": column_lists,
        }
        wanted = {name: found for name, found in keys.items() if found}
        _load_parameters(connection, wanted, details)
        _load_lists(connection, wanted, details)
    return details


def _pieces(owners: Owners) -> Iterator[tuple[Sequence[int], ...]]:
    sequences = [
        list(batches(list(keys)))
        for keys in (
            owners.tables,
            owners.partitions,
            owners.storages,
            owners.serdes,
            owners.column_lists,
        )
    ]
    for place in range(max(map(len, sequences), default=0)):
        yield tuple(pieces[place] if place < len(pieces) else [] for pieces in sequences)


_PARAMETER_TABLES: dict[str, tuple[Table, ColumnElement[int]]] = {
    "tables": (t.TABLE_PARAMS, t.TABLE_PARAMS.c.TBL_ID),
    "partitions": (t.PARTITION_PARAMS, t.PARTITION_PARAMS.c.PART_ID),
    "storages": (t.SD_PARAMS, t.SD_PARAMS.c.SD_ID),
    "serdes": (t.SERDE_PARAMS, t.SERDE_PARAMS.c.SERDE_ID),
}


@cache
def _parameter_query(kinds: tuple[str, ...]) -> Executable | None:
    """Made once for each set of kinds: SQLAlchemy then knows its SQL without looking again."""
    parts = [
        select(
            literal_column(f"'{kind}'").label("kind"),
            owner.label("owner"),
            table.c.PARAM_KEY.label("name"),
            table.c.PARAM_VALUE.label("value"),
        ).where(owner.in_(bindparam(kind, expanding=True)))
        for kind, (table, owner) in _PARAMETER_TABLES.items()
        if kind in kinds
    ]
    return _together(parts)


def _load_parameters(
    connection: Connection, wanted: Mapping[str, Sequence[int]], details: Details
) -> None:
    query = _parameter_query(tuple(wanted))
    if query is None:
        return
    for kind, owner, name, value in connection.execute(query, wanted):
        details.parameters[kind][owner][name] = value or ""


def _list_part(
    kind: str,
    owners: str,
    owner: ColumnElement[int],
    place: ColumnElement[Any],
    name: ColumnElement[Any],
    *,
    text: ColumnElement[Any] | None = None,
    comment: ColumnElement[Any] | None = None,
    number: ColumnElement[Any] | None = None,
) -> tuple[str, Select[Any]]:
    nothing = cast(null(), String(4000))
    part = select(
        literal_column(f"'{kind}'").label("kind"),
        owner.label("owner"),
        cast(place, BigInteger).label("place"),
        name.label("name"),
        (nothing if text is None else text).label("text"),
        (nothing if comment is None else comment).label("comment"),
        (literal_column("0") if number is None else number).label("number"),
    ).where(owner.in_(bindparam(owners, expanding=True)))
    return owners, part


_LIST_PARTS: tuple[tuple[str, Select[Any]], ...] = (
    _list_part(
        "column",
        "column_lists",
        t.COLUMNS_V2.c.CD_ID,
        t.COLUMNS_V2.c.INTEGER_IDX,
        t.COLUMNS_V2.c.COLUMN_NAME,
        text=t.COLUMNS_V2.c.TYPE_NAME,
        comment=t.COLUMNS_V2.c.COMMENT,
    ),
    _list_part(
        "key",
        "tables",
        t.PARTITION_KEYS.c.TBL_ID,
        t.PARTITION_KEYS.c.INTEGER_IDX,
        t.PARTITION_KEYS.c.PKEY_NAME,
        text=t.PARTITION_KEYS.c.PKEY_TYPE,
        comment=t.PARTITION_KEYS.c.PKEY_COMMENT,
    ),
    _list_part(
        "value",
        "partitions",
        t.PARTITION_KEY_VALS.c.PART_ID,
        t.PARTITION_KEY_VALS.c.INTEGER_IDX,
        t.PARTITION_KEY_VALS.c.PART_KEY_VAL,
    ),
    _list_part(
        "bucket",
        "storages",
        t.BUCKETING_COLS.c.SD_ID,
        t.BUCKETING_COLS.c.INTEGER_IDX,
        t.BUCKETING_COLS.c.BUCKET_COL_NAME,
    ),
    _list_part(
        "sort",
        "storages",
        t.SORT_COLS.c.SD_ID,
        t.SORT_COLS.c.INTEGER_IDX,
        t.SORT_COLS.c.COLUMN_NAME,
        number=t.SORT_COLS.c.ORDER,
    ),
    _list_part(
        "skew",
        "storages",
        t.SKEWED_COL_NAMES.c.SD_ID,
        t.SKEWED_COL_NAMES.c.INTEGER_IDX,
        t.SKEWED_COL_NAMES.c.SKEWED_COL_NAME,
    ),
)


@cache
def _list_query(kinds: tuple[str, ...]) -> Executable | None:
    return _together([part for owners, part in _LIST_PARTS if owners in kinds])


def _load_lists(
    connection: Connection, wanted: Mapping[str, Sequence[int]], details: Details
) -> None:
    query = _list_query(tuple(wanted))
    if query is None:
        return
    rows = sorted(connection.execute(query, wanted), key=lambda row: row.place)
    for kind, owner, _, name, text, comment, number in rows:
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


def _together(parts: Sequence[Select[Any]]) -> Executable | None:
    if len(parts) <= 1:
        return parts[0] if parts else None
    return union_all(*parts)
