"""Partitions of a table: found by name, values or filter; added, changed, removed in bulk."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Select,
    bindparam,
    delete,
    select,
    update,
)

from hms_bridge.backend.batches import batches
from hms_bridge.backend.fixed_sql import put_rows
from hms_bridge.backend.listing_sql import ListingSql
from hms_bridge.backend.schema.catalog_tables import (
    PARTITION_KEY_VALS,
    PARTITION_PARAMS,
    PARTITIONS,
    SDS,
    SERDES,
)
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog import statistics_names
from hms_bridge.catalog.dependents import delete_dependents
from hms_bridge.catalog.found_partitions import FoundPartitions, StoredPartition, described
from hms_bridge.catalog.parameters import insert_parameters
from hms_bridge.catalog.partition_matches import Matches, alike, ids_of_names, matches
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
from hms_bridge.model.partition_name import partition_name

PARTITION_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MPartition"


_SELECT: Select[Any] = (
    select(PARTITIONS, *(column for column in STORAGE_COLUMNS if column is not SDS.c.SD_ID))
    .select_from(PARTITIONS)
    .outerjoin(SDS, PARTITIONS.c.SD_ID == SDS.c.SD_ID)
    .outerjoin(SERDES, SDS.c.SERDE_ID == SERDES.c.SERDE_ID)
)


_NAMES = ListingSql(
    lambda _: select(PARTITIONS.c.PART_NAME).where(
        PARTITIONS.c.TBL_ID == bindparam("table_id", type_=BigInteger)
    )
)
_OF_TABLE = ListingSql(
    lambda _: _SELECT.where(PARTITIONS.c.TBL_ID == bindparam("table_id", type_=BigInteger))
)
_OF_KEYS = ListingSql(lambda is_one_of: _SELECT.where(is_one_of(PARTITIONS.c.PART_ID, "keys")))


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
    return _load(connection, stored.table, ids_of_names(connection, stored, names), lock)


def existing_names(
    connection: Connection, stored: StoredTable, names: Collection[str]
) -> frozenset[str]:
    """Those that exist of these partitions, and those beside which the database takes none of
    them: on MySQL one with other blanks at its end."""
    return frozenset(name for name, _ in alike(connection, stored, names))


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

    def has_them(values: Sequence[str]) -> bool:
        """As far as these values go."""
        places = range(len(values))
        return all(values[place] in required.get(place, values) for place in places)

    chosen = BoundFilter(
        has_them, required, frozenset(required), lambda values: not has_them(values)
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
    selected = matches(connection, stored, chosen.selects, chosen, lock)
    return load_matches(connection, stored, selected, max_parts, lock)


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
        "CREATE_TIME": new.create_time or old.partition.create_time,
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
