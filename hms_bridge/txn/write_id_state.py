"""Give a table the write-id state that its replication source has (Hive:
ReplTableWriteIdStateFunction; docs/hive/replication.md §14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import insert

from hms_bridge.backend.batches import batches
from hms_bridge.backend.schema.txn_tables import NEXT_WRITE_ID
from hms_bridge.backend.work import Work
from hms_bridge.errors import MetaError
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.ids import NO_TXN, SEED_MAX, TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import (
    AbortReason,
    OpenTxnsRequest,
    TableWriteIdState,
    TxnToWriteId,
)
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.txn.abort import AbortedTxn, abort_txns
from hms_bridge.txn.compaction_queue import enqueue
from hms_bridge.txn.names import require_fitting
from hms_bridge.txn.open_txns import open_txns
from hms_bridge.txn.write_ids import has_write_ids, put_write_ids

ABORTED_MAX = 25_000
"""How many aborted write ids one call makes aborted here. Each takes a transaction, and other
writers wait meanwhile."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AppliedState:
    """What was done: transactions opened and aborted at once; log OPEN_TXN and ABORT_TXN."""

    opened: tuple[TxnId, ...] = ()
    aborted: tuple[AbortedTxn, ...] = ()


def repl_table_write_id_state(work: Work, state: TableWriteIdState) -> AppliedState:
    """Make the source's aborted write ids aborted here too; nothing if the table has write ids.

    A major compaction of the table, or of the partitions named, is queued if there are any.
    Raises MetaError for a list that is none, or of more than :data:`ABORTED_MAX` aborted ids.
    Differs from Hive: committed ids above an aborted one stay visible. Hive then ends the list at
    an aborted id, because it knows no committed one (docs/hive/transactions.md §6), and hides what
    was written after it.
    """
    connection = work.connection
    database, table = state.database_name.lower(), state.table_name.lower()
    require_fitting(Target(database, table))
    if has_write_ids(connection, database, table):
        return AppliedState()
    valid = ValidWriteIdList.parse(state.valid_write_ids)
    if not 0 <= valid.high_watermark <= SEED_MAX:
        raise MetaError(
            f"'{state.valid_write_ids[:60]}' names no highest write id of {database}.{table} from "
            f"0 to {SEED_MAX}; send the source's list"
        )
    aborted_ids = [
        write_id for write_id in valid.aborted_ids if 0 < write_id <= valid.high_watermark
    ]
    if len(aborted_ids) > ABORTED_MAX:
        raise MetaError(
            f"{database}.{table} has {len(aborted_ids)} aborted write ids at its source; at most "
            f"{ABORTED_MAX} are taken over. Let the source compact and clean the table first"
        )
    connection.execute(
        insert(NEXT_WRITE_ID).values(
            NWI_DATABASE=database, NWI_TABLE=table, NWI_NEXT=valid.high_watermark + 1
        )
    )
    if not aborted_ids:
        return AppliedState()
    opened: list[TxnId] = []
    for batch in batches(aborted_ids, work.settings.txn.open_batch_max):
        opened += _own(work, state, batch)
    committed = _highest_committed(valid)
    if committed is not None:
        # Transaction 0 counts as committed everywhere.
        owner = TxnToWriteId(txn_id=NO_TXN, write_id=committed)
        put_write_ids(connection, database, table, (owner,))
    outcome = abort_txns(work, opened, AbortReason.REPL_WRITE_ID)
    names = state.partition_names
    for partition in (None,) if names is None else names:
        request = CompactionRequest(
            target=Target(database, table, partition),
            type=CompactionType.MAJOR,
        )
        enqueue(work, request)
    return AppliedState(opened=tuple(opened), aborted=outcome.aborted)


def _highest_committed(valid: ValidWriteIdList) -> WriteId | None:
    others = {*valid.aborted_ids, *valid.open_ids}
    ids = range(valid.high_watermark, 0, -1)
    return next((WriteId(number) for number in ids if number not in others), None)


def _own(work: Work, state: TableWriteIdState, write_ids: Sequence[WriteId]) -> tuple[TxnId, ...]:
    """Open a transaction for each write id and make it the owner."""
    request = OpenTxnsRequest(count=len(write_ids), user=state.user, host=state.host)
    ids = open_txns(work, request).ids
    pairs = [
        TxnToWriteId(txn_id=txn_id, write_id=write_id)
        for txn_id, write_id in zip(ids, write_ids, strict=True)
    ]
    put_write_ids(work.connection, state.database_name.lower(), state.table_name.lower(), pairs)
    return ids
