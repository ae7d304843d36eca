"""PARTITION_EVENTS: partitions that clients marked (Hive: ObjectStore.markPartitionForEvent;
docs/hive/metastore.md §40)."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, delete, exists, insert, select

from hms_bridge.backend.schema.mark_tables import PARTITION_EVENTS
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.model.target import TableName

_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MPartitionEvent"
_E = PARTITION_EVENTS.c


def is_marked(connection: Connection, table: TableName, values: str, kind: int) -> bool:
    """Whether somebody did."""
    return bool(connection.scalar(select(exists().where(*_here(table, values, kind)))))


def mark(connection: Connection, table: TableName, values: str, kind: int, now_ms: int) -> None:
    """Once: a second mark says nothing more."""
    if is_marked(connection, table, values, kind):
        return
    connection.execute(
        insert(PARTITION_EVENTS).values(
            PART_NAME_ID=next_sequence_values(connection, _SEQUENCE, 1),
            CAT_NAME=table.catalog,
            DB_NAME=table.database,
            TBL_NAME=table.table,
            PARTITION_NAME=values,
            EVENT_TYPE=kind,
            EVENT_TIME=now_ms,
        )
    )


def purge(connection: Connection, before_ms: int) -> int:
    """Those that were made before; how many."""
    gone = connection.execute(delete(PARTITION_EVENTS).where(_E.EVENT_TIME < before_ms))
    return gone.rowcount


def _here(table: TableName, values: str, kind: int) -> tuple[ColumnElement[bool], ...]:
    return (
        _E.PARTITION_NAME == values,
        _E.TBL_NAME == table.table,
        _E.DB_NAME == table.database,
        _E.CAT_NAME == table.catalog,
        _E.EVENT_TYPE == kind,
    )
