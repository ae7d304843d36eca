"""Events of statistics, functions, constraints; others: :mod:`hms_bridge.notification.events`.

Names and their order are those of Hive's JSON messages (golden: notifications of 4.0.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hms_bridge.model.catalog import Table
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.model.event import EventType
from hms_bridge.model.function import Function
from hms_bridge.model.ids import WriteId
from hms_bridge.model.statistics import ObjectStatistics
from hms_bridge.notification.events import EventDraft, of_table, origin
from hms_bridge.wire.convert_constraint import TableConstraints, constraints_message
from hms_bridge.wire.convert_function import function_to_struct
from hms_bridge.wire.convert_statistics import object_to_struct
from hms_bridge.wire.object_json import struct_to_json, table_to_json


def table_statistics_updated(
    table: Table,
    statistics: ObjectStatistics,
    now_seconds: int,
    *,
    engine: str,
    write_id: WriteId,
    parameters: Mapping[str, str],
) -> EventDraft:
    """UPDATE_TBL_COL_STAT_EVENT; the message names the table only in its parts. ``parameters`` are
    the stored ones; those of ``table`` are as the statement's snapshot sees them."""
    message = _updated_head(table, statistics, now_seconds, engine, write_id) | {
        "parameters": dict(parameters),
        "tableObjJson": table_to_json(table),
    }
    return of_table(EventType.UPDATE_TABLE_STATISTICS, table, message)


def partition_statistics_updated(
    table: Table,
    values: Sequence[str],
    statistics: ObjectStatistics,
    now_seconds: int,
    *,
    engine: str,
    write_id: WriteId,
    parameters: Mapping[str, str],
) -> EventDraft:
    """UPDATE_PART_COL_STAT_EVENT, one for each partition."""
    message = _updated_head(table, statistics, now_seconds, engine, write_id) | {
        "parameters": dict(parameters),
        "partVals": list(values),
        "tableObjJson": table_to_json(table),
    }
    return of_table(EventType.UPDATE_PARTITION_STATISTICS, table, message)


def table_statistics_deleted(table: Table, column: str, now_seconds: int) -> EventDraft:
    """DELETE_TBL_COL_STAT_EVENT, one for each column."""
    message = _deleted_head(table, column, now_seconds)
    return of_table(EventType.DELETE_TABLE_STATISTICS, table, message)


def partition_statistics_deleted(
    table: Table, partition: str, values: Sequence[str], column: str, now_seconds: int
) -> EventDraft:
    """DELETE_PART_COL_STAT_EVENT, one for each column and partition."""
    message = _deleted_head(table, column, now_seconds)
    message |= {"partName": partition, "partValues": list(values)}
    return of_table(EventType.DELETE_PARTITION_STATISTICS, table, message)


def function_created(function: Function, now_seconds: int) -> EventDraft:
    """CREATE_FUNCTION."""
    struct: Any = function_to_struct(function)
    struct.resourceUris = struct.resourceUris or None
    message = {"functionObjJson": struct_to_json(struct)}
    return _of_function(EventType.CREATE_FUNCTION, function, message, now_seconds)


def function_dropped(function: Function, now_seconds: int) -> EventDraft:
    """DROP_FUNCTION."""
    message = {"functionName": function.name}
    return _of_function(EventType.DROP_FUNCTION, function, message, now_seconds)


_ADDED = {
    ConstraintKind.PRIMARY_KEY: EventType.ADD_PRIMARY_KEY,
    ConstraintKind.FOREIGN_KEY: EventType.ADD_FOREIGN_KEY,
    ConstraintKind.UNIQUE: EventType.ADD_UNIQUE,
    ConstraintKind.NOT_NULL: EventType.ADD_NOT_NULL,
    ConstraintKind.DEFAULT: EventType.ADD_DEFAULT,
    ConstraintKind.CHECK: EventType.ADD_CHECK,
}


def constraints_added(
    table: Table, constraints: Sequence[ColumnConstraint], now_seconds: int
) -> EventDraft:
    """ADD_PRIMARYKEY … ADD_CHECKCONSTRAINT, of constraints of one kind.

    A foreign key's names the table that it refers to, as in Hive
    (docs/hive/replication.md §30); of one in another database, which Hive reports there
    too, it names its own table, whose replica is to have it.
    """
    kind = constraints[0].kind
    added = TableConstraints(
        kind=kind,
        database_name=table.database_name,
        table_name=table.name,
        catalog_name=table.catalog_name,
        constraints=tuple(constraints),
    )
    message = constraints_message(added, now_seconds)
    referred = constraints[0].refers_to
    if referred is None or referred.database_name.lower() != table.database_name:
        return of_table(_ADDED[kind], table, message)
    return of_table(_ADDED[kind], replace(table, name=referred.table_name.lower()), message)


def constraint_dropped(table: Table, name: str, now_seconds: int) -> EventDraft:
    """DROP_CONSTRAINT."""
    message = {
        **origin(),
        "dbName": table.database_name,
        "tableName": table.name,
        "constraintName": name,
        "timestamp": now_seconds,
    }
    return of_table(EventType.DROP_CONSTRAINT, table, message)


def _updated_head(
    table: Table, statistics: ObjectStatistics, now_seconds: int, engine: str, write_id: WriteId
) -> dict[str, Any]:
    struct = object_to_struct(
        statistics,
        database=table.database_name,
        table=table.name,
        catalog=table.catalog_name,
        engine=engine,
    )
    return {
        "writeId": write_id,
        "timestamp": now_seconds,
        **origin(),
        "database": table.database_name,
        "colStatsJson": struct_to_json(struct),
    }


def _deleted_head(table: Table, column: str, now_seconds: int) -> dict[str, Any]:
    head = {"timestamp": now_seconds, **origin(), "database": table.database_name}
    return head | {"colName": column}


def _of_function(
    event: EventType, function: Function, more: dict[str, Any], now_seconds: int
) -> EventDraft:
    message = {**origin(), "db": function.database_name, **more, "timestamp": now_seconds}
    return EventDraft(
        type=event,
        catalog_name=function.catalog_name,
        database_name=function.database_name,
        message=message,
    )
