"""Replay of transactions: open, write ids, commit with its files, abort.

Ids of transactions differ between source and target, write ids are the same. Every step can be
repeated: an opened source transaction keeps its target transaction, write ids that the target has
are not allocated again, copied files are compared, a commit moves ``repl.last.id`` with it.
"""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.errors import DumpIncompleteError, ReplError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.txn import (
    AbortReason,
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    ReplLastId,
    TxnType,
    WriteEvent,
)
from hms_bridge.repl.dump_reader import DumpedEvent, DumpedPartition, DumpedTable
from hms_bridge.repl.event_payload import (
    AbortTxnPayload,
    AllocWriteIdPayload,
    CommitTxnPayload,
    OpenTxnPayload,
)
from hms_bridge.repl.events.context import ReplayContext, TableChange
from hms_bridge.repl.events.partition import ensure_partition


def open_txn(context: ReplayContext, event: DumpedEvent) -> None:
    """Open a transaction for each one of the source."""
    context.replica.open_together(OpenTxnPayload.parse(event.payload, event.where).txn_ids)


def allocate_write_ids(context: ReplayContext, event: DumpedEvent) -> None:
    """Give the source's write ids to its transactions here.

    Ids up to the target's own maximum came with the bootstrap, or with an earlier try. CREATE TABLE
    AS SELECT takes its write id before the table exists. A
    transaction that the dump does not open (it was open at the bootstrap, or the source filters
    transactions) is opened now: its rows must not get lost.
    """
    payload = AllocWriteIdPayload.parse(event.payload, event.where)
    replica = context.replica
    if payload.database_name != replica.names.source_database:
        return
    target, name = replica.names.target_database, payload.table_name
    is_gone = context.lives.next_change(name, event.id) is TableChange.GONE
    if is_gone and replica.find_table(name) is None:
        return
    known = replica.metastore.get_max_allocated_write_id(target, name)
    new = tuple(one for one in payload.allocated if one.write_id > known)
    if not new:
        return
    if new[0].write_id != known + 1:
        raise ReplError(
            f"{event.where}: begins with write id {new[0].write_id} of {target}.{name}, "
            f"which stands at {known}; what was written between is not in any dump. Drop the "
            "target database and load a new bootstrap dump"
        )
    replica.ensure_open(one.txn_id for one in new)
    given = replica.metastore.allocate_table_write_ids(
        AllocateWriteIdsRequest(
            database_name=target,
            table_name=name,
            repl_policy=replica.names.policy,
            repl_source=new,
        )
    )
    if {one.write_id for one in given} != {one.write_id for one in new}:
        raise ReplError(
            f"{event.where}: the target did not give write ids {new[0].write_id} to "
            f"{new[-1].write_id} of {target}.{name} to the source's transactions; is another load "
            "running? If not, load a new bootstrap dump"
        )


def commit_txn(context: ReplayContext, event: DumpedEvent) -> None:
    """Copy what the transaction wrote, then commit it together with the database's progress."""
    payload = CommitTxnPayload.parse(event.payload, event.where)
    replica = context.replica
    names = replica.names
    writes = tuple(
        one for one in payload.writes or () if one.database_name == names.source_database
    )
    tables = {one.table.name: one for one in context.reader.commit_tables(event)}
    _require_all_dumped(event, writes, tables)
    written = [
        write
        for name, dumped in tables.items()
        for write in _copy_table(context, event, dumped, _of_table(writes, name))
    ]
    if written:
        replica.ensure_open([payload.txn_id])
    replica.metastore.commit_txn(
        CommitTxnRequest(
            txn_id=payload.txn_id,
            type=TxnType.REPL_CREATED,
            repl_policy=names.policy,
            write_events=tuple(written),
            repl_last_id=ReplLastId(
                database_name=names.target_database, last_repl_id=int(event.id)
            ),
        )
    )
    if written:
        replica.recorded_with_commit(event.id)


def abort_txn(context: ReplayContext, event: DumpedEvent) -> None:
    """Abort the transaction here; nothing if it was never opened or is aborted already."""
    payload = AbortTxnPayload.parse(event.payload, event.where)
    context.replica.metastore.abort_txn(
        AbortTxnRequest(
            txn_id=payload.txn_id,
            repl_policy=context.replica.names.policy,
            type=TxnType.REPL_CREATED,
            reason=AbortReason.REPL_DEFAULT,
        )
    )


def _of_table(writes: tuple[WriteEvent, ...], table: str) -> tuple[WriteEvent, ...]:
    return tuple(one for one in writes if one.table_name == table)


def _require_all_dumped(
    event: DumpedEvent, writes: tuple[WriteEvent, ...], tables: dict[str, DumpedTable]
) -> None:
    """The payload and the directories tell the same, or a copy of the dump lost something."""
    told: dict[str, int] = {}
    for one in writes:
        told[one.table_name] = told.get(one.table_name, 0) + len(one.files)
    found = {name: len(one.all_files) for name, one in tables.items()}
    if told != found:
        raise DumpIncompleteError(
            f"{event.where}: its payload names files of {_counts(told)}, its directories of "
            f"{_counts(found)}; copy the dump again, or make a new one"
        )


def _counts(files: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(files.items())) or "no table"


def _copy_table(
    context: ReplayContext,
    event: DumpedEvent,
    dumped: DumpedTable,
    writes: tuple[WriteEvent, ...],
) -> tuple[WriteEvent, ...]:
    replica = context.replica
    table = context.table_or_gone(dumped.table.name, event)
    if table is None:
        return ()
    known = replica.metastore.get_max_allocated_write_id(table.database_name, table.name)
    highest = max(one.write_id for one in writes)
    if highest > known:
        raise ReplError(
            f"{event.where}: commits write id {highest} of {table.full_name}, which was never "
            f"allocated there (it stands at {known}); load a new bootstrap dump"
        )
    replica.copy(dumped.files, table.storage.location, table.full_name)
    for part in dumped.partitions:
        _copy_partition(context, event, dumped, part)
    return tuple(_on_target(one, replica.names.target_database) for one in writes)


def _copy_partition(
    context: ReplayContext, event: DumpedEvent, dumped: DumpedTable, part: DumpedPartition
) -> None:
    table = context.replica.find_table(dumped.table.name)
    if table is None:
        return
    partition = ensure_partition(context, event, table, part)
    what = f"{table.full_name}/{part.name}"
    context.replica.copy(part.files, partition.storage.location, what)


def _on_target(write: WriteEvent, database: str) -> WriteEvent:
    return replace(
        write,
        write_id=WriteId(write.write_id),
        database_name=database,
        table_object="",
        partition_object=None,
        files=(),
    )
