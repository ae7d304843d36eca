"""Counters that are behind what was numbered by them: the next number was given already."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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


def late_counters(connection: Connection) -> Iterator[LateCounter]:
    """All that are behind, each with the statement that puts it right, to be run while no
    metastore is at work."""
    yield from _sequences(connection)
    for counter, numbered in _SINGLE:
        greatest = _greatest(connection, *numbered)
        rows = connection.execute(select(counter)).scalars().all()
        next_number = rows[0] if len(rows) == 1 else None
        if next_number is None or next_number <= greatest:
            name = f"{counter.table.name}.{counter.name}"
            remedy = f"one row with {greatest + 1} in {name}"
            yield LateCounter(name, next_number, greatest, remedy)
    yield from _events(connection)
    yield from _write_ids(connection)
    yield from _txn_ids(connection)


def _sequences(connection: Connection) -> Iterator[LateCounter]:
    """A row that is missing is made by who needs it first."""
    sequences = txn_tables.SEQUENCE_TABLE
    for name, next_number in connection.execute(select(sequences).order_by(*sequences.primary_key)):
        numbered = SEQUENCES.get(name)
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


def _write_ids(connection: Connection) -> Iterator[LateCounter]:
    nexts, given = txn_tables.NEXT_WRITE_ID, txn_tables.TXN_TO_WRITE_ID
    present = connection.execute(
        select(
            nexts.c.NWI_DATABASE,
            nexts.c.NWI_TABLE,
            nexts.c.NWI_NEXT,
            func.max(given.c.T2W_WRITEID),
        )
        .join_from(
            nexts,
            given,
            (given.c.T2W_DATABASE == nexts.c.NWI_DATABASE)
            & (given.c.T2W_TABLE == nexts.c.NWI_TABLE),
        )
        .group_by(nexts.c.NWI_DATABASE, nexts.c.NWI_TABLE, nexts.c.NWI_NEXT)
        .having(func.max(given.c.T2W_WRITEID) >= nexts.c.NWI_NEXT)
    )
    for database, table, next_number, greatest in present:
        name = f"NEXT_WRITE_ID of {database}.{table}"
        yield LateCounter(name, next_number, greatest, f"NWI_NEXT = {greatest + 1} in that row")


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
