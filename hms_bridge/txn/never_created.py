"""Directories of tables that were never made: a CREATE TABLE AS SELECT failed after it had written
(Hive: TxnHandler.submitForCleanup; docs/hive/compaction.md §25)."""

from __future__ import annotations

from sqlalchemy import exists, insert, select

from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, TXN_TO_WRITE_ID
from hms_bridge.backend.sequences import next_compaction_id
from hms_bridge.backend.work import Work
from hms_bridge.errors import MetaError
from hms_bridge.model.compaction import CompactionRequest, CompactionState
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.property_text import format_properties
from hms_bridge.model.txn import TxnState
from hms_bridge.txn.names import lower_target, require_entry_fits
from hms_bridge.txn.txn_state import ended_error, lock_txn, purged_state

_Q = COMPACTION_QUEUE.c
_W = TXN_TO_WRITE_ID.c


def submit_for_cleanup(
    work: Work, request: CompactionRequest, write_id: WriteId, txn_id: TxnId
) -> bool:
    """Queue a directory for the cleaner, which takes what ``txn_id`` wrote there once that is
    aborted. True: it is queued, now or by a call before.

    Hive asks nothing; here only who wrote the table may. Raises NoSuchTxnError if the transaction
    is committed or unknown, MetaError if it has no such write id, or for texts that do not fit.
    """
    connection = work.connection
    target = lower_target(request.target)
    properties = format_properties(request.properties)
    require_entry_fits(target, request.run_as, properties)
    row = lock_txn(connection, txn_id)
    if row is None or row.state is TxnState.COMMITTED:
        raise ended_error(txn_id, row.state if row else purged_state(connection, txn_id))
    is_writer = exists().where(
        _W.T2W_TXNID == txn_id,
        _W.T2W_DATABASE == target.database,
        _W.T2W_TABLE == target.table,
        _W.T2W_WRITEID == write_id,
    )
    if not connection.scalar(select(is_writer)):
        raise MetaError(
            f"transaction {txn_id} has no write id {write_id} of {target.name}: nothing was queued"
        )
    is_queued = exists().where(_Q.CQ_TXN_ID == txn_id, _Q.CQ_TBLPROPERTIES == properties)
    if connection.scalar(select(is_queued)):
        return True
    connection.execute(
        insert(COMPACTION_QUEUE).values(
            CQ_ID=next_compaction_id(connection),
            CQ_DATABASE=target.database,
            CQ_TABLE=target.table,
            CQ_PARTITION=target.partition,
            CQ_STATE=CompactionState.READY_FOR_CLEANING.stored,
            CQ_TYPE=request.type.stored,
            CQ_TBLPROPERTIES=properties,
            CQ_ENQUEUE_TIME=work.now_ms,
            CQ_RUN_AS=request.run_as,
            CQ_HIGHEST_WRITE_ID=write_id,
            CQ_TXN_ID=txn_id,
        )
    )
    return True
