"""Verbs of materialized views that tables do not have."""

from __future__ import annotations

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import tables, view_creation
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import InvalidOperationError
from hms_bridge.hooks import changes
from hms_bridge.model.catalog import DEFAULT_CATALOG, CreationMetadata, Table
from hms_bridge.model.target import TableName
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads, reads_whole, writes
from hms_bridge.txn import materialization


def _update_creation_metadata(
    unit: UnitOfWork,
    database: str,
    view: str,
    creation: CreationMetadata,
    catalog: str = DEFAULT_CATALOG,
) -> None:
    key = TableName.lower(database, view, catalog)
    table = tables.require_table(unit.connection, *key.parts, RowLock.EXCLUSIVE).table
    if not table.is_materialized_view:
        raise InvalidOperationError(f"{table.full_name} is no materialized view")
    view_creation.put_creation(unit.connection, table, creation, unit.clock.now_ms())
    unit.points.append(changes.view_updated(key))


def _get_materialized_views(
    connection: Connection, database: str | None = None, catalog: str = DEFAULT_CATALOG
) -> tuple[Table, ...]:
    lowered = None if database is None else database.lower()
    named = view_creation.names_for_rewriting(connection, lowered, catalog.lower())
    views = (tables.find_table(connection, owner, name, catalog.lower()) for owner, name in named)
    return tuple(
        view_creation.with_creation(connection, stored).table
        for stored in views
        if stored is not None
    )


class MaterializedViewVerbs(VerbFamily):
    """The MaterializedViewStore."""

    update_creation_metadata = writes(_update_creation_metadata)
    get_materialized_views = reads_whole(sql(_get_materialized_views))
    get_materialization_changes = reads(materialization.changes_since)
    lock_materialization_rebuild = writes(materialization.lock_rebuild)
    heartbeat_materialization_rebuild = writes(materialization.heartbeat_rebuild)
