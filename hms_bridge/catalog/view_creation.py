"""MV_CREATION_METADATA and MV_TABLES_USED: of which tables, in which state, views were made.

The counts say how many rows of a table changed since, by which Hive decides how to rebuild.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection, insert, literal, select, update

from hms_bridge.backend.batches import insert_rows
from hms_bridge.backend.schema.catalog_tables import DBS, TBLS, Flag
from hms_bridge.backend.schema.dependent_tables import MV_CREATION_METADATA, MV_TABLES_USED
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog import tables
from hms_bridge.catalog.materialized_views import forget_view
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.model.catalog import (
    DEFAULT_CATALOG,
    CreationMetadata,
    SourceTable,
    Table,
    TableType,
)
from hms_bridge.model.statistics import ChangedRows

CREATION_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MCreationMetadata"

_M, _U = MV_CREATION_METADATA.c, MV_TABLES_USED.c


def with_creation(connection: Connection, stored: StoredTable) -> StoredTable:
    """The table, with what it was made of if it is a materialized view."""
    if not stored.table.is_materialized_view:
        return stored
    return replace(
        stored, table=replace(stored.table, creation=find_creation(connection, stored.table))
    )


def find_creation(connection: Connection, view: Table) -> CreationMetadata | None:
    """What a view was made of; None where nothing was stored."""
    row = connection.execute(
        select(MV_CREATION_METADATA).where(
            _M.CAT_NAME == view.catalog_name,
            _M.DB_NAME == view.database_name,
            _M.TBL_NAME == view.name,
        )
    ).first()
    if row is None:
        return None
    sources = _sources(connection, row.MV_CREATION_METADATA_ID)
    return CreationMetadata(
        catalog_name=row.CAT_NAME,
        database_name=row.DB_NAME,
        table_name=row.TBL_NAME,
        table_names=frozenset(source.table.full_name for source in sources),
        snapshot=row.TXN_LIST,
        materialized_ms=row.MATERIALIZATION_TIME,
        sources=sources,
    )


def put_creation(
    connection: Connection, view: Table, creation: CreationMetadata, now_ms: int
) -> None:
    """Store what a view was made of now; tables that are not there any more are left out."""
    forget_view(connection, view)
    key = next_sequence_values(connection, CREATION_SEQUENCE, 1)
    connection.execute(
        insert(MV_CREATION_METADATA).values(
            MV_CREATION_METADATA_ID=key,
            CAT_NAME=view.catalog_name,
            DB_NAME=view.database_name,
            TBL_NAME=view.name,
            TXN_LIST=creation.snapshot,
            MATERIALIZATION_TIME=now_ms,
        )
    )
    counts = {source.table.full_name: source for source in creation.sources}
    rows = [
        _used(key, table_key, counts.get(name))
        for name, table_key in _keys_of(connection, creation).items()
    ]
    insert_rows(connection, MV_TABLES_USED, rows)


def names_for_rewriting(
    connection: Connection, database: str | None = None, catalog: str = DEFAULT_CATALOG
) -> tuple[tuple[str, str], ...]:
    """(database, view) of the materialized views that queries may be rewritten to, sorted."""
    query = (
        select(DBS.c.NAME, TBLS.c.TBL_NAME)
        .join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
        .where(
            DBS.c.CTLG_NAME == catalog,
            TBLS.c.TBL_TYPE == TableType.MATERIALIZED_VIEW.value,
            # Not IS TRUE: PostgreSQL has no such thing for a value that is given to a statement.
            TBLS.c.IS_REWRITE_ENABLED == literal(True, Flag),
        )
    )
    if database is not None:
        query = query.where(DBS.c.NAME == database)
    return tuple(sorted((name, view) for name, view in connection.execute(query)))


def count_changed_rows(connection: Connection, changed: ChangedRows) -> None:
    """Add to the counts of every view that reads the table."""
    connection.execute(
        update(MV_TABLES_USED)
        .where(_U.TBL_ID == changed.table_id)
        .values(
            INSERTED_COUNT=_U.INSERTED_COUNT + changed.inserted,
            UPDATED_COUNT=_U.UPDATED_COUNT + changed.updated,
            DELETED_COUNT=_U.DELETED_COUNT + changed.deleted,
        )
    )


def _used(key: int, table_key: int, source: SourceTable | None) -> dict[str, int]:
    return {
        "MV_CREATION_METADATA_ID": key,
        "TBL_ID": table_key,
        "INSERTED_COUNT": 0 if source is None else source.inserted,
        "UPDATED_COUNT": 0 if source is None else source.updated,
        "DELETED_COUNT": 0 if source is None else source.deleted,
    }


def _keys_of(connection: Connection, creation: CreationMetadata) -> Mapping[str, int]:
    by_database: dict[str, list[str]] = {}
    named = {source.table.full_name for source in creation.sources} or creation.table_names
    for full_name in sorted(named):
        database, _, name = full_name.partition(".")
        by_database.setdefault(database, []).append(name)
    return {
        stored.table.full_name: stored.id
        for database, names in by_database.items()
        for stored in tables.find_tables(connection, database, names, creation.catalog_name)
    }


def _sources(connection: Connection, key: int) -> tuple[SourceTable, ...]:
    rows = connection.execute(
        select(MV_TABLES_USED, TBLS.c.TBL_NAME, DBS.c.NAME, DBS.c.CTLG_NAME)
        .join(TBLS, _U.TBL_ID == TBLS.c.TBL_ID)
        .join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
        .where(_U.MV_CREATION_METADATA_ID == key)
        .order_by(DBS.c.NAME, TBLS.c.TBL_NAME)
    ).all()
    sources: list[SourceTable] = []
    for row in rows:
        tables_found: Sequence[StoredTable] = tables.find_tables(
            connection, row.NAME, [row.TBL_NAME], row.CTLG_NAME
        )
        sources += [
            SourceTable(
                table=stored.table,
                inserted=row.INSERTED_COUNT,
                updated=row.UPDATED_COUNT,
                deleted=row.DELETED_COUNT,
            )
            for stored in tables_found
        ]
    return tuple(sources)
