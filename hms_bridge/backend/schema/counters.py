"""Counters that are behind what was numbered by them: the next number was given already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, func, select, text, union_all

from hms_bridge.backend.schema import catalog_tables as catalog
from hms_bridge.backend.schema import (
    connector_tables,
    dependent_tables,
    function_tables,
    mark_tables,
    notification_tables,
    plan_tables,
    privilege_tables,
    report_tables,
    txn_tables,
)
from hms_bridge.backend.schema.hive_3_1 import NEXT_TXN_ID
from hms_bridge.backend.schema.versions import is_old, tables_of_3_1

_MODEL = "org.apache.hadoop.hive.metastore.model."

SEQUENCES: dict[str, Column[int]] = {
    f"{_MODEL}{name}": column
    for name, column in (
        ("MCatalog", catalog.CTLGS.c.CTLG_ID),
        ("MDatabase", catalog.DBS.c.DB_ID),
        ("MTable", catalog.TBLS.c.TBL_ID),
        ("MPartition", catalog.PARTITIONS.c.PART_ID),
        ("MStorageDescriptor", catalog.SDS.c.SD_ID),
        ("MColumnDescriptor", catalog.CDS.c.CD_ID),
        ("MSerDeInfo", catalog.SERDES.c.SERDE_ID),
        ("MStringList", catalog.SKEWED_STRING_LIST.c.STRING_LIST_ID),
        ("MTableColumnStatistics", catalog.TAB_COL_STATS.c.CS_ID),
        ("MPartitionColumnStatistics", catalog.PART_COL_STATS.c.CS_ID),
        ("MFunction", function_tables.FUNCS.c.FUNC_ID),
        ("MRole", privilege_tables.ROLES.c.ROLE_ID),
        ("MRoleMap", privilege_tables.ROLE_MAP.c.ROLE_GRANT_ID),
        ("MGlobalPrivilege", privilege_tables.GLOBAL_PRIVS.c.USER_GRANT_ID),
        ("MDBPrivilege", privilege_tables.DB_PRIVS.c.DB_GRANT_ID),
        ("MTablePrivilege", privilege_tables.TBL_PRIVS.c.TBL_GRANT_ID),
        ("MTableColumnPrivilege", privilege_tables.TBL_COL_PRIVS.c.TBL_COLUMN_GRANT_ID),
        ("MPartitionPrivilege", privilege_tables.PART_PRIVS.c.PART_GRANT_ID),
        ("MPartitionColumnPrivilege", privilege_tables.PART_COL_PRIVS.c.PART_COLUMN_GRANT_ID),
        ("MDCPrivilege", connector_tables.DC_PRIVS.c.DC_GRANT_ID),
        ("MPartitionEvent", mark_tables.PARTITION_EVENTS.c.PART_NAME_ID),
        ("MNotificationLog", notification_tables.NOTIFICATION_LOG.c.NL_ID),
        ("MTxnWriteNotificationLog", notification_tables.TXN_WRITE_NOTIFICATION_LOG.c.WNL_ID),
        ("MCreationMetadata", dependent_tables.MV_CREATION_METADATA.c.MV_CREATION_METADATA_ID),
        ("MISchema", dependent_tables.I_SCHEMA.c.SCHEMA_ID),
        ("MSchemaVersion", dependent_tables.SCHEMA_VERSION.c.SCHEMA_VERSION_ID),
        ("MStoredProc", dependent_tables.STORED_PROCS.c.SP_ID),
        ("MPackage", dependent_tables.PACKAGES.c.PKG_ID),
        ("MScheduledQuery", report_tables.SCHEDULED_QUERIES.c.SCHEDULED_QUERY_ID),
        ("MScheduledExecution", report_tables.SCHEDULED_EXECUTIONS.c.SCHEDULED_EXECUTION_ID),
        ("MRuntimeStat", report_tables.RUNTIME_STATS.c.RS_ID),
        ("MWMResourcePlan", plan_tables.WM_RESOURCEPLAN.c.RP_ID),
        ("MWMPool", plan_tables.WM_POOL.c.POOL_ID),
        ("MWMTrigger", plan_tables.WM_TRIGGER.c.TRIGGER_ID),
        ("MWMMapping", plan_tables.WM_MAPPING.c.MAPPING_ID),
    )
}
"""Which column DataNucleus numbers from which row of SEQUENCE_TABLE."""

_txn = txn_tables
_SINGLE: tuple[tuple[Column[int], tuple[Column[int], ...]], ...] = (
    (_txn.NEXT_LOCK_ID.c.NL_NEXT, (_txn.HIVE_LOCKS.c.HL_LOCK_EXT_ID,)),
    (
        _txn.NEXT_COMPACTION_QUEUE_ID.c.NCQ_NEXT,
        (_txn.COMPACTION_QUEUE.c.CQ_ID, _txn.COMPLETED_COMPACTIONS.c.CC_ID),
    ),
)
"""A counter's only row, and the columns that it numbers."""


@dataclass(frozen=True, slots=True)
class LateCounter:
    """A counter whose next number is ``next_number``, though ``greatest`` was given."""

    name: str
    next_number: int | None
    greatest: int
    remedy: str

    @property
    def what(self) -> str:
        """For people."""
        at = "has no row" if self.next_number is None else f"would give {self.next_number}"
        return f"{self.name} {at}, but {self.greatest} was given"


def late_counters(connection: Connection, version: str) -> Iterator[LateCounter]:
    """All that are behind in a database of that version, each with the statement that puts it
    right, to be run while no metastore is at work."""
    old = tables_of_3_1(connection.dialect) if is_old(version) else None
    there: _There = old.column if old is not None else _as_described
    counters = [(there(counter), tuple(map(there, numbered))) for counter, numbered in _SINGLE]
    if old is not None:
        (counter,) = old.table(NEXT_TXN_ID).columns
        counters.append((counter, (there(_txn.TXNS.c.TXN_ID),)))
    numbered_by = {
        name: there(column)
        for name, column in SEQUENCES.items()
        if old is None or old.has(column.table)
    }
    yield from _sequences(connection, numbered_by)
    yield from _singles(connection, counters)
    yield from _events(connection)
    yield from _write_ids(connection, there)
    if old is None:
        yield from _txn_ids(connection)


_There = Callable[[Column[Any]], Column[Any]]
"""What a column that we describe is in the database."""


def _as_described(column: Column[Any]) -> Column[Any]:
    return column


def _singles(
    connection: Connection, counters: Iterable[tuple[Column[Any], Iterable[Column[Any]]]]
) -> Iterator[LateCounter]:
    for counter, numbered in counters:
        greatest = _greatest(connection, *numbered)
        rows = connection.execute(select(counter)).scalars().all()
        next_number = rows[0] if len(rows) == 1 else None
        if next_number is None or next_number <= greatest:
            name = f"{counter.table.name}.{counter.name}"
            remedy = f"one row with {greatest + 1} in {name}"
            yield LateCounter(name, next_number, greatest, remedy)


def _sequences(
    connection: Connection, numbered_by: Mapping[str, Column[int]]
) -> Iterator[LateCounter]:
    """A row that is missing is made by who needs it first."""
    sequences = txn_tables.SEQUENCE_TABLE
    for name, next_number in connection.execute(select(sequences).order_by(*sequences.primary_key)):
        numbered = numbered_by.get(name)
        greatest = 0 if numbered is None else _greatest(connection, numbered)
        if next_number <= greatest:
            remedy = f"NEXT_VAL = {greatest + 1} in SEQUENCE_TABLE where SEQUENCE_NAME is {name}"
            yield LateCounter(f"SEQUENCE_TABLE of {name}", next_number, greatest, remedy)


def _events(connection: Connection) -> Iterator[LateCounter]:
    log, sequence = notification_tables.NOTIFICATION_LOG, notification_tables.NOTIFICATION_SEQUENCE
    greatest = _greatest(connection, log.c.EVENT_ID)
    numbers = connection.execute(select(sequence.c.NEXT_EVENT_ID)).scalars().all()
    if len(numbers) > 1 or ((numbers or greatest) and min(numbers, default=0) <= greatest):
        name = "NOTIFICATION_SEQUENCE.NEXT_EVENT_ID"
        next_number = numbers[0] if len(numbers) == 1 else None
        yield LateCounter(name, next_number, greatest, f"one row with {greatest + 1} in {name}")


def _write_ids(connection: Connection, there: _There) -> Iterator[LateCounter]:
    nexts, given = txn_tables.NEXT_WRITE_ID.c, txn_tables.TXN_TO_WRITE_ID.c
    database, table, next_number = map(there, (nexts.NWI_DATABASE, nexts.NWI_TABLE, nexts.NWI_NEXT))
    last = func.max(there(given.T2W_WRITEID))
    present = connection.execute(
        select(database, table, next_number, last)
        .join_from(
            database.table,
            there(given.T2W_DATABASE).table,
            (there(given.T2W_DATABASE) == database) & (there(given.T2W_TABLE) == table),
        )
        .group_by(database, table, next_number)
        .having(last >= next_number)
    )
    for database_name, table_name, present_number, greatest in present:
        name = f"NEXT_WRITE_ID of {database_name}.{table_name}"
        remedy = f"NWI_NEXT = {greatest + 1} in that row"
        yield LateCounter(name, present_number, greatest, remedy)


def _txn_ids(connection: Connection) -> Iterator[LateCounter]:
    """PostgreSQL's sequence does not look at rows; the others' counters do."""
    if connection.dialect.name != "postgresql":
        return
    greatest = _greatest(connection, txn_tables.TXNS.c.TXN_ID)
    sequence = "pg_get_serial_sequence('\"TXNS\"', 'TXN_ID')"
    name = connection.execute(text(f"SELECT {sequence}")).scalar()
    last = connection.execute(
        text(f"SELECT COALESCE(pg_sequence_last_value(CAST({sequence} AS REGCLASS)), 0)")
    ).scalar()
    if name is None or int(last or 0) < greatest:
        remedy = f"SELECT setval('{name}', {greatest})" if name else "hms-bridge schema upgrade"
        yield LateCounter("TXNS.TXN_ID", int(last or 0) + 1, greatest, remedy)


def _greatest(connection: Connection, *columns: Column[int]) -> int:
    maxima = union_all(*(select(func.max(column)) for column in columns))
    return max((int(row[0]) for row in connection.execute(maxima) if row[0] is not None), default=0)
