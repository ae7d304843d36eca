"""Tables and views."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    String,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    select,
    update,
)

from hms_bridge.backend.batches import batches, insert_rows, is_among_texts, texts_text
from hms_bridge.backend.columns import Columns, Kept
from hms_bridge.backend.dialect import is_postgresql
from hms_bridge.backend.listing_sql import ListingSql
from hms_bridge.backend.schema.catalog_tables import (
    DBS,
    PARTITION_KEYS,
    SDS,
    SERDES,
    TABLE_PARAMS,
    TBLS,
)
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog import constraints, materialized_views, statistics_names
from hms_bridge.catalog.dependents import delete_dependents
from hms_bridge.catalog.details import load_details
from hms_bridge.catalog.parameters import insert_parameters
from hms_bridge.catalog.patterns import matches
from hms_bridge.catalog.row_locks import RowLock, read_held
from hms_bridge.catalog.storage import (
    STORAGE_COLUMNS,
    StorageKey,
    as_read_for_acid,
    delete_storages,
    delete_unused_column_lists,
    insert_column_list,
    insert_storages,
    load_skews,
    owners_of,
    storage_from_row,
    storage_key,
    update_storage,
)
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_CATALOG, PrincipalType, Table

TABLE_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MTable"
_CHANGEABLE = Columns(
    Table,
    name="TBL_NAME",
    type="TBL_TYPE",
    last_access_time="LAST_ACCESS_TIME",
    owner="OWNER",
    owner_type=Kept(
        "OWNER_TYPE", lambda name: PrincipalType[name or "USER"], lambda kind: kind.name
    ),
    retention="RETENTION",
    view_expanded_text="VIEW_EXPANDED_TEXT",
    view_original_text="VIEW_ORIGINAL_TEXT",
    is_rewrite_enabled=Kept("IS_REWRITE_ENABLED", bool),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTable:
    """A table and the keys of its rows; ``storage`` is None for a view stored without any."""

    id: int
    database_id: int
    table: Table
    storage: StorageKey | None


_SELECT: Select[Any] = (
    select(
        TBLS,
        DBS.c.NAME.label("DATABASE_NAME"),
        DBS.c.CTLG_NAME,
        *(column for column in STORAGE_COLUMNS if column is not SDS.c.SD_ID),
    )
    .select_from(TBLS)
    .join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
    .outerjoin(SDS, TBLS.c.SD_ID == SDS.c.SD_ID)
    .outerjoin(SERDES, SDS.c.SERDE_ID == SERDES.c.SERDE_ID)
)

_OF_DATABASE = _SELECT.where(
    DBS.c.NAME == bindparam("database", type_=String),
    DBS.c.CTLG_NAME == bindparam("catalog", type_=String),
)
_ONE = ListingSql(lambda _: _OF_DATABASE.where(TBLS.c.TBL_NAME == bindparam("name", type_=String)))
"""Made once, because clients ask for a table before nearly everything else."""
_NAMED = ListingSql(lambda _: _OF_DATABASE.where(is_among_texts(TBLS.c.TBL_NAME, "names")))
"""On PostgreSQL, of many at once, as the cleaner does."""


def find_table(
    connection: Connection,
    database: str,
    name: str,
    catalog: str = DEFAULT_CATALOG,
    lock: RowLock = RowLock.NONE,
) -> StoredTable | None:
    """One table, with three statements at most; None if it is not there."""

    def read() -> Sequence[Row[Any]]:
        return _ONE.named(connection, database=database, catalog=catalog, name=name)

    if lock is RowLock.NONE:
        rows = read()
    else:
        owner = select(DBS.c.DB_ID).where(DBS.c.NAME == database, DBS.c.CTLG_NAME == catalog)
        where = and_(TBLS.c.TBL_NAME == name, TBLS.c.DB_ID.in_(owner))
        rows = read_held(connection, TBLS.c.TBL_ID, where, lock, read)
    records = _records(connection, rows)
    return records[0] if records else None


def require_table(
    connection: Connection,
    database: str,
    name: str,
    catalog: str = DEFAULT_CATALOG,
    lock: RowLock = RowLock.NONE,
) -> StoredTable:
    """One table. Raises NoSuchObjectError."""
    stored = find_table(connection, database, name, catalog, lock)
    if stored is None:
        raise NoSuchObjectError(f"{catalog}.{database}.{name} table not found")
    return stored


def find_tables(
    connection: Connection, database: str, names: Collection[str], catalog: str = DEFAULT_CATALOG
) -> tuple[StoredTable, ...]:
    """Those that exist, sorted by name."""
    tables = [
        stored
        for piece in batches(list(dict.fromkeys(names)))
        for stored in _records(connection, _rows_named(connection, database, catalog, piece))
    ]
    return tuple(sorted(tables, key=lambda stored: stored.table.name))


def _rows_named(
    connection: Connection, database: str, catalog: str, names: Sequence[str]
) -> Sequence[Row[Any]]:
    if not is_postgresql(connection):
        is_named = TBLS.c.TBL_NAME.in_(names)
        return connection.execute(_SELECT.where(_in(database, catalog), is_named)).all()
    given = texts_text(names)
    return _NAMED.named(connection, database=database, catalog=catalog, names=given)


def table_names(
    connection: Connection,
    database: str,
    pattern: str | None = None,
    table_type: str | None = None,
    catalog: str = DEFAULT_CATALOG,
) -> tuple[str, ...]:
    """Names that match, sorted."""
    query = select(TBLS.c.TBL_NAME).join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
    query = query.where(_in(database.lower(), catalog.lower()))
    if pattern is not None:
        query = query.where(matches(TBLS.c.TBL_NAME, pattern))
    if table_type is not None:
        query = query.where(TBLS.c.TBL_TYPE == table_type)
    return tuple(sorted(connection.scalars(query)))


def has_table(connection: Connection, database_id: int, name: str) -> bool:
    """Whether a database has a table of that name."""
    same = exists().where(TBLS.c.TBL_NAME == name, TBLS.c.DB_ID == database_id)
    return bool(connection.scalar(select(same)))


def _in(database: str, catalog: str) -> ColumnElement[bool]:
    return and_(DBS.c.NAME == database, DBS.c.CTLG_NAME == catalog)


def _records(connection: Connection, rows: Sequence[Row[Any]]) -> Sequence[StoredTable]:
    if not rows:
        return ()
    keys = {row.TBL_ID: storage_key(row) for row in rows}
    owners = owners_of([key for key in keys.values() if key is not None])
    owners.tables = list(keys)
    details = load_details(connection, owners)
    skews = load_skews(connection, details)
    return [
        StoredTable(
            id=row.TBL_ID,
            database_id=row.DB_ID,
            storage=keys[row.TBL_ID],
            table=_table(
                row,
                storage=storage_from_row(
                    row, details, skews, tuple(details.columns.get(row.CD_ID, ()))
                ),
                partition_columns=tuple(details.partition_columns.get(row.TBL_ID, ())),
                parameters=details.parameters["tables"].get(row.TBL_ID, {}),
            ),
        )
        for row in rows
    ]


def _table(row: Row[Any], **details: Any) -> Table:
    table = _CHANGEABLE.read(
        row,
        id=row.TBL_ID,
        database_name=row.DATABASE_NAME,
        catalog_name=row.CTLG_NAME,
        create_time=row.CREATE_TIME,
        write_id=row.WRITE_ID or 0,
        **details,
    )
    if not table.is_full_acid:
        return table
    return replace(table, storage=as_read_for_acid(table.storage))


def insert_table(connection: Connection, database_id: int, table: Table) -> int:
    """A new table; its TBL_ID."""
    column_list = insert_column_list(connection, table.storage.columns)
    (storage,) = insert_storages(connection, [table.storage], [column_list])
    key = next_sequence_values(connection, TABLE_SEQUENCE, 1)
    connection.execute(
        insert(TBLS).values(
            TBL_ID=key,
            DB_ID=database_id,
            SD_ID=storage.storage_id,
            CREATE_TIME=table.create_time,
            # The column is about transactional tables; Hive writes 0 for others.
            WRITE_ID=table.write_id if table.is_transactional else 0,
            **_CHANGEABLE.values(table),
        )
    )
    insert_parameters(connection, TABLE_PARAMS, [(key, table.parameters)])
    _insert_partition_columns(connection, key, table)
    return key


def update_table(
    connection: Connection, stored: StoredTable, table: Table, database_id: int
) -> None:
    """Replace a table, and its name and database too. Its partitions stay as they are."""
    old = stored.table
    values = _CHANGEABLE.values(table) | {"DB_ID": database_id}
    if table.is_transactional and table.write_id > 0:
        values["WRITE_ID"] = table.write_id
    connection.execute(update(TBLS).where(TBLS.c.TBL_ID == stored.id).values(**values))
    if stored.storage is not None:
        _update_storage(connection, stored.id, stored.storage, old, table)
    if (old.database_name, old.name) != (table.database_name, table.name):
        statistics_names.rename_table(connection, stored.id, table.database_name, table.name)
        if old.is_materialized_view:
            materialized_views.rename_view(connection, old, table)
    if old.parameters != table.parameters:
        connection.execute(delete(TABLE_PARAMS).where(TABLE_PARAMS.c.TBL_ID == stored.id))
        insert_parameters(connection, TABLE_PARAMS, [(stored.id, table.parameters)])
    if old.partition_columns != table.partition_columns:
        connection.execute(delete(PARTITION_KEYS).where(PARTITION_KEYS.c.TBL_ID == stored.id))
        _insert_partition_columns(connection, stored.id, table)


def _update_storage(
    connection: Connection, table_id: int, key: StorageKey, old: Table, new: Table
) -> None:
    column_list = key.column_list_id
    columns = (old.storage.columns, new.storage.columns)
    if column_list is None or columns[0] != columns[1]:
        # Partitions keep the old list, which Hive leaves stale too (docs/hive/acid.md §20).
        column_list = insert_column_list(connection, new.storage.columns)
    if key.column_list_id is not None and key.column_list_id != column_list:
        constraints.follow_columns(
            connection,
            constraints.ColumnChange(
                table_id=table_id,
                old_list_id=key.column_list_id,
                new_list_id=column_list,
                old=columns[0],
                new=columns[1],
            ),
        )
    update_storage(connection, key, old.storage, new.storage, column_list)
    if key.column_list_id is not None and key.column_list_id != column_list:
        delete_unused_column_lists(connection, [key.column_list_id])


def delete_table(connection: Connection, stored: StoredTable) -> None:
    """Remove a table and what belongs to it; the caller has removed its partitions.

    Raises MetaError if a materialized view reads it.
    """
    materialized_views.require_unused(connection, stored.id)
    if stored.table.is_materialized_view:
        materialized_views.forget_view(connection, stored.table)
    constraints.forget_table(connection, stored.id)
    delete_dependents(connection, TBLS, [stored.id])
    connection.execute(delete(TBLS).where(TBLS.c.TBL_ID == stored.id))
    if stored.storage is not None:
        delete_storages(connection, [stored.storage])


def _insert_partition_columns(connection: Connection, key: int, table: Table) -> None:
    rows = [
        {
            "TBL_ID": key,
            "PKEY_NAME": column.name.lower(),
            "PKEY_TYPE": column.type,
            "PKEY_COMMENT": column.comment,
            "INTEGER_IDX": place,
        }
        for place, column in enumerate(table.partition_columns)
    ]
    insert_rows(connection, PARTITION_KEYS, rows)
