"""Partitions of a table: found by name, values or filter; added, changed, removed in bulk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product, takewhile
from math import prod
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    String,
    and_,
    bindparam,
    delete,
    select,
    update,
)

from hms_bridge.backend.batches import batches
from hms_bridge.backend.dialect import is_postgresql
from hms_bridge.backend.fixed_sql import FixedSql, put_rows
from hms_bridge.backend.listing_sql import ListingSql
from hms_bridge.backend.schema.catalog_tables import (
    PARTITION_KEY_VALS,
    PARTITION_PARAMS,
    PARTITIONS,
    SDS,
    SERDES,
)
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.backend.text_keyed_sql import TextKeyedSql
from hms_bridge.catalog import statistics_names
from hms_bridge.catalog.dependents import delete_dependents
from hms_bridge.catalog.found_partitions import FoundPartitions, StoredPartition, described
from hms_bridge.catalog.parameters import insert_parameters
from hms_bridge.catalog.partition_predicate import BoundFilter
from hms_bridge.catalog.row_locks import RowLock, hold
from hms_bridge.catalog.storage import (
    STORAGE_COLUMNS,
    delete_storages,
    delete_unused_column_lists,
    insert_column_list,
    insert_storages,
    storage_key,
    update_storage,
)
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Column, Partition, Storage, Table
from hms_bridge.model.partition_name import partition_name, unescape

PARTITION_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MPartition"
REQUIRED_VALUES_MAX = 500
"""More are not sent to the database, which takes a bounded number of parameters."""
_BEHIND_SLASH = chr(ord("/") + 1)


_SELECT: Select[Any] = (
    select(PARTITIONS, *(column for column in STORAGE_COLUMNS if column is not SDS.c.SD_ID))
    .select_from(PARTITIONS)
    .outerjoin(SDS, PARTITIONS.c.SD_ID == SDS.c.SD_ID)
    .outerjoin(SERDES, SDS.c.SERDE_ID == SERDES.c.SERDE_ID)
)


_NAMED = select(PARTITIONS.c.PART_NAME, PARTITIONS.c.PART_ID)
_NAMES = ListingSql(
    lambda _: select(PARTITIONS.c.PART_NAME).where(
        PARTITIONS.c.TBL_ID == bindparam("table_id", type_=BigInteger)
    )
)
_OF_TABLE = ListingSql(
    lambda _: _SELECT.where(PARTITIONS.c.TBL_ID == bindparam("table_id", type_=BigInteger))
)
_OF_KEYS = ListingSql(lambda is_one_of: _SELECT.where(is_one_of(PARTITIONS.c.PART_ID, "keys")))
_OF_NAMES = TextKeyedSql(
    PARTITIONS.c.PART_NAME,
    lambda is_meant: _NAMED.where(
        PARTITIONS.c.TBL_ID == bindparam("table_id", type_=BigInteger), is_meant
    ),
)


def _below(is_from: ColumnElement[bool], is_before: ColumnElement[bool]) -> FixedSql:
    is_of_table = PARTITIONS.c.TBL_ID == bindparam("table_id", type_=BigInteger)
    return FixedSql(_NAMED.where(is_of_table, is_from, is_before))


_FROM, _BEFORE = bindparam("first", type_=String), bindparam("behind", type_=String)
_NAME = PARTITIONS.c.PART_NAME
_BELOW = _below(_NAME >= _FROM, _NAME < _BEFORE)
# By bytes, which an index of ours is in the order of; else it is a language's.
_BELOW_ON_POSTGRESQL = _below(
    _NAME.op("~>=~", is_comparison=True)(_FROM), _NAME.op("~<~", is_comparison=True)(_BEFORE)
)


def name_of(table: Table, values: Sequence[str]) -> str:
    """The name of the partition with these values (Warehouse.makePartName; docs/hive/metastore.md
    §23). Raises MetaError for a wrong number."""
    if len(values) != len(table.partition_columns):
        keys = "".join(f"{column.name}, " for column in table.partition_columns)
        given = "".join(f"{value}, " for value in values)
        raise MetaError(f"Invalid partition key & values; keys [{keys}], values [{given}]")
    return partition_name(table.partition_columns, values)


def partition_names(
    connection: Connection, stored: StoredTable, max_parts: int = -1
) -> tuple[str, ...]:
    """Names, sorted; the first ``max_parts`` of them unless that is negative."""
    if max_parts < 0:
        rows = _NAMES.all(connection, table_id=stored.id)
    else:
        query = select(PARTITIONS.c.PART_NAME).where(PARTITIONS.c.TBL_ID == stored.id)
        rows = connection.execute(query.order_by(PARTITIONS.c.PART_NAME).limit(max_parts)).all()
    # Sorted here, too: a database may put names in the order of a language.
    return tuple(sorted([name for (name,) in rows]))


def find_by_names(
    connection: Connection,
    stored: StoredTable,
    names: Collection[str],
    lock: RowLock = RowLock.NONE,
) -> FoundPartitions:
    """Those that exist, sorted by name."""
    return _load(connection, stored.table, _ids_of_names(connection, stored, names), lock)


def existing_names(
    connection: Connection, stored: StoredTable, names: Collection[str]
) -> frozenset[str]:
    """Which of these partitions exist."""
    return frozenset(_ids_of_names(connection, stored, names))


def _ids_of_names(
    connection: Connection, stored: StoredTable, names: Collection[str]
) -> Mapping[str, int]:
    return dict(_OF_NAMES.all(connection, list(dict.fromkeys(names)), table_id=stored.id))


def find_all(connection: Connection, stored: StoredTable, max_parts: int = -1) -> FoundPartitions:
    """All partitions, or the first ``max_parts`` by name."""
    if max_parts < 0:
        rows = _OF_TABLE.named(connection, table_id=stored.id)
    else:
        query = _SELECT.where(PARTITIONS.c.TBL_ID == stored.id)
        rows = connection.execute(query.order_by(PARTITIONS.c.PART_NAME).limit(max_parts)).all()
    return described(connection, stored.table, rows)


def find_by_values(
    connection: Connection,
    stored: StoredTable,
    prefix: Sequence[str],
    max_parts: int = -1,
    lock: RowLock = RowLock.NONE,
) -> FoundPartitions:
    """Those whose values match; "" or a missing value matches all.

    Raises MetaError for more values than there are partition columns.
    """
    keys = len(stored.table.partition_columns)
    if len(prefix) > keys:
        raise MetaError(
            f"Incorrect number of partition values. numPartKeys={keys}, "
            f"part_val=[{', '.join(prefix)}]"
        )
    required = {place: frozenset({value}) for place, value in enumerate(prefix) if value}
    chosen = BoundFilter(
        lambda values: all(values[place] in texts for place, texts in required.items()), required
    )
    return find_by_filter(connection, stored, chosen, max_parts, lock)


def find_by_filter(
    connection: Connection,
    stored: StoredTable,
    chosen: BoundFilter,
    max_parts: int = -1,
    lock: RowLock = RowLock.NONE,
) -> FoundPartitions:
    """Those that a filter selects, sorted by name."""
    selected = matches(connection, stored, chosen.selects, chosen.required_values)
    return load_matches(connection, stored, selected, max_parts, lock)


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
    required_values: Mapping[int, frozenset[str]],
) -> Matches:
    """What a condition selects, and what it perhaps selects (verdict None).

    The database narrows the names down by the values that the condition requires; the condition
    then reads the values out of each name, so nothing is loaded yet.
    """
    narrowing = {
        place: sorted(texts)
        for place, texts in required_values.items()
        if len(texts) <= REQUIRED_VALUES_MAX
    }
    selected, is_uncertain = [], False
    for name, key in _narrowed(connection, stored, narrowing):
        is_chosen = verdict(_values_in(name))
        is_uncertain |= is_chosen is None
        if is_chosen is not False:
            selected.append((name, key))
    return Matches(selected=sorted(selected), is_uncertain=is_uncertain)


def _narrowed(
    connection: Connection, stored: StoredTable, values: Mapping[int, Sequence[str]]
) -> Iterable[Sequence[Any]]:
    """Names and keys of those that have one of these values at each place, and perhaps of others.
    With a value at every place they have a name, and with values at the first ones a beginning of
    it, by which they are found among any number of others."""
    columns = stored.table.partition_columns
    led = list(takewhile(values.__contains__, range(len(columns))))
    if led and prod(len(values[place]) for place in led) <= REQUIRED_VALUES_MAX:
        chosen = product(*(values[place] for place in led))
        names = [partition_name(columns[: len(led)], v) for v in chosen]
        if len(led) == len(columns):
            return _ids_of_names(connection, stored, names).items()
        return _below_names(connection, stored, names)
    if all(len(texts) == 1 for texts in values.values()):
        given = {f"value_{place}": text for place, (text,) in values.items()}
        return _with_values(tuple(values)).all(connection, table_id=stored.id, **given)
    return connection.execute(
        _NAMED.where(
            PARTITIONS.c.TBL_ID == stored.id,
            *(_value_at(place).in_(texts) for place, texts in values.items()),
        )
    )


def _below_names(
    connection: Connection, stored: StoredTable, beginnings: Sequence[str]
) -> Iterable[Sequence[Any]]:
    """Those whose names go on after one of these."""
    below = _BELOW_ON_POSTGRESQL if is_postgresql(connection) else _BELOW
    answers = [
        below.read_later(
            connection, table_id=stored.id, first=f"{name}/", behind=f"{name}{_BEHIND_SLASH}"
        )
        for name in beginnings
    ]
    return [row for answer in answers for row in answer.rows]


@cache
def _with_values(places: tuple[int, ...]) -> ListingSql:
    """A value at each place: nearly all conditions are such."""
    return ListingSql(
        lambda _: _NAMED.where(
            PARTITIONS.c.TBL_ID == bindparam("table_id", type_=BigInteger),
            *(_value_at(place) == bindparam(f"value_{place}", type_=String) for place in places),
        )
    )


def _value_at(place: int) -> ScalarSelect[Any]:
    """A value of each partition. Not a join: a database without statistics (PostgreSQL has none of
    what was just loaded) goes through all values of all tables for each partition then."""
    values = PARTITION_KEY_VALS.c
    is_value = and_(values.PART_ID == PARTITIONS.c.PART_ID, values.INTEGER_IDX == place)
    return select(values.PART_KEY_VAL).where(is_value).correlate(PARTITIONS).scalar_subquery()


def load_matches(
    connection: Connection,
    stored: StoredTable,
    chosen: Matches,
    max_parts: int = -1,
    lock: RowLock = RowLock.NONE,
) -> FoundPartitions:
    """The partitions themselves, or the first ``max_parts`` of them."""
    wanted = chosen.selected if max_parts < 0 else chosen.selected[:max_parts]
    return _load(connection, stored.table, dict(wanted), lock)


def _values_in(name: str) -> list[str]:
    return [unescape(part.partition("=")[2]) for part in name.split("/")]


def _load(
    connection: Connection, table: Table, wanted: Mapping[str, int], lock: RowLock
) -> FoundPartitions:
    """Partitions with these names and keys. Who waited for their rows does not get those that were
    dropped or renamed meanwhile: two that change a partition share the row of its table."""
    pieces = list(batches(sorted(wanted.values())))
    for piece in pieces:
        hold(connection, PARTITIONS.c.PART_ID, PARTITIONS.c.PART_ID.in_(piece), lock)
    there = (row for piece in pieces for row in _OF_KEYS.named(connection, keys=piece))
    rows = [row for row in there if wanted.get(row.PART_NAME) == row.PART_ID]
    return described(connection, table, rows)


def insert_partitions(
    connection: Connection, stored: StoredTable, partitions: Sequence[Partition]
) -> None:
    """New partitions; the caller has seen that none of them exists.

    Those with the columns of the table share its column list.
    """
    if not partitions:
        return
    lists = _column_lists(connection, stored, [partition.storage for partition in partitions])
    storages = insert_storages(
        connection, [p.storage for p in partitions], [lists[p.storage.columns] for p in partitions]
    )
    first = next_sequence_values(connection, PARTITION_SEQUENCE, len(partitions))
    numbered = list(enumerate(partitions, first))
    put_rows(
        connection,
        PARTITIONS,
        [
            {
                "PART_ID": key,
                "TBL_ID": stored.id,
                "SD_ID": storage.storage_id,
                "CREATE_TIME": partition.create_time,
                "LAST_ACCESS_TIME": partition.last_access_time,
                "PART_NAME": name_of(stored.table, partition.values),
                "WRITE_ID": partition.write_id,
            }
            for (key, partition), storage in zip(numbered, storages, strict=True)
        ],
    )
    _insert_values(connection, numbered)
    parameters = [(key, partition.parameters) for key, partition in numbered]
    insert_parameters(connection, PARTITION_PARAMS, parameters)


def _column_lists(
    connection: Connection, stored: StoredTable, storages: Sequence[Storage]
) -> Mapping[tuple[Column, ...], int]:
    lists: dict[tuple[Column, ...], int] = {}
    if stored.storage is not None and stored.storage.column_list_id is not None:
        lists[stored.table.storage.columns] = stored.storage.column_list_id
    for storage in storages:
        if storage.columns not in lists:
            lists[storage.columns] = insert_column_list(connection, storage.columns)
    return lists


def _insert_values(connection: Connection, numbered: Sequence[tuple[int, Partition]]) -> None:
    rows = [
        {"PART_ID": key, "PART_KEY_VAL": value, "INTEGER_IDX": place}
        for key, partition in numbered
        for place, value in enumerate(partition.values)
    ]
    put_rows(connection, PARTITION_KEY_VALS, rows)


def update_partitions(
    connection: Connection,
    table: StoredTable,
    changes: Sequence[tuple[StoredPartition, Partition]],
) -> None:
    """Replace partitions; other values rename one (its place among its siblings is free)."""
    lists = _column_lists(
        connection,
        table,
        [
            new.storage
            for old, new in changes
            if new.storage.columns != old.partition.storage.columns
        ],
    )
    left: set[int] = set()
    for old, new in changes:
        _update(connection, table, old, new)
        if old.storage is None:
            continue
        column_list = old.storage.column_list_id
        if column_list is None or new.storage.columns != old.partition.storage.columns:
            left |= {column_list} if column_list is not None else set()
            column_list = lists[new.storage.columns]
        update_storage(connection, old.storage, old.partition.storage, new.storage, column_list)
    delete_unused_column_lists(connection, left)


def _update(
    connection: Connection, table: StoredTable, old: StoredPartition, new: Partition
) -> None:
    values: dict[str, Any] = {
        "PART_NAME": name_of(table.table, new.values),
        "LAST_ACCESS_TIME": new.last_access_time,
    }
    if new.write_id > 0:
        values["WRITE_ID"] = new.write_id
    connection.execute(update(PARTITIONS).where(PARTITIONS.c.PART_ID == old.id).values(**values))
    if old.partition.values != new.values:
        connection.execute(delete(PARTITION_KEY_VALS).where(PARTITION_KEY_VALS.c.PART_ID == old.id))
        _insert_values(connection, [(old.id, new)])
        statistics_names.rename_partition(connection, old.id, values["PART_NAME"])
    if old.partition.parameters != new.parameters:
        connection.execute(delete(PARTITION_PARAMS).where(PARTITION_PARAMS.c.PART_ID == old.id))
        insert_parameters(connection, PARTITION_PARAMS, [(old.id, new.parameters)])


def delete_partitions(connection: Connection, partitions: Sequence[StoredPartition]) -> None:
    """Remove partitions and what belongs to them."""
    for piece in batches(partitions):
        keys = [stored.id for stored in piece]
        delete_dependents(connection, PARTITIONS, keys)
        connection.execute(delete(PARTITIONS).where(PARTITIONS.c.PART_ID.in_(keys)))
    delete_storages(connection, [s.storage for s in partitions if s.storage is not None])


def locations(connection: Connection, stored: StoredTable) -> Mapping[str, str]:
    """Where each partition of a table lies, by name, without loading them."""
    rows = connection.execute(
        select(PARTITIONS.c.PART_NAME, SDS.c.LOCATION)
        .join(SDS, PARTITIONS.c.SD_ID == SDS.c.SD_ID)
        .where(PARTITIONS.c.TBL_ID == stored.id)
    )
    return {row.PART_NAME: row.LOCATION for row in rows if row.LOCATION}


def delete_all_of(connection: Connection, stored: StoredTable) -> Mapping[str, str]:
    """Remove every partition of a table; the locations that they had, by name."""
    places = locations(connection, stored)
    rows = connection.execute(
        select(PARTITIONS.c.PART_ID, PARTITIONS.c.SD_ID, SDS.c.SERDE_ID, SDS.c.CD_ID)
        .outerjoin(SDS, PARTITIONS.c.SD_ID == SDS.c.SD_ID)
        .where(PARTITIONS.c.TBL_ID == stored.id)
    ).all()
    for piece in batches([row.PART_ID for row in rows]):
        delete_dependents(connection, PARTITIONS, piece)
        connection.execute(delete(PARTITIONS).where(PARTITIONS.c.PART_ID.in_(piece)))
    keys = [key for row in rows if (key := storage_key(row)) is not None]
    delete_storages(connection, keys)
    return places
