"""Verbs of marks on partitions (Hive: HMSHandler.markPartitionForEvent)."""

from __future__ import annotations

from collections.abc import Mapping

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import partition_marks, tables
from hms_bridge.catalog.limits import check_partition_mark
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import MetaError
from hms_bridge.hooks import changes
from hms_bridge.model.catalog import Table
from hms_bridge.model.target import TableName
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads_whole, writes


def _mark(unit: UnitOfWork, name: TableName, values: Mapping[str, str], kind: int) -> None:
    stored = tables.require_table(unit.connection, *name.parts, RowLock.EXCLUSIVE)
    in_order = _in_order(stored.table, values)
    text = ",".join(in_order)
    check_partition_mark(text)
    now_ms = unit.now_seconds * 1000
    partition_marks.mark(unit.connection, name, text, kind, now_ms)
    unit.points.append(changes.partition_marked(name, in_order, kind))


def _is_marked(
    connection: Connection, name: TableName, values: Mapping[str, str], kind: int
) -> bool:
    stored = tables.require_table(connection, *name.parts)
    text = ",".join(_in_order(stored.table, values))
    return partition_marks.is_marked(connection, name, text, kind)


def _in_order(table: Table, values: Mapping[str, str]) -> list[str]:
    """The values in the table's order; Hive writes them here with commas."""
    lowered = {key.lower(): value for key, value in values.items()}
    keys = [column.name for column in table.partition_columns]
    if sorted(lowered) != sorted(keys):
        raise MetaError(
            f"values of {', '.join(sorted(lowered))} were sent; the partition columns of "
            f"{table.full_name} are {', '.join(keys) or 'none'}"
        )
    return [lowered[key] for key in keys]


class PartitionMarkVerbs(VerbFamily):
    """The ServedMarks."""

    mark_partition = writes(_mark)
    is_partition_marked = reads_whole(sql(_is_marked))
