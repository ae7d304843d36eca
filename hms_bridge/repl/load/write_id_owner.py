"""Write ids of a replica are its source's: one that somebody else took there ends the replication.

Whatever became of it, it would hide what the source wrote under that number, or show what the
source never had. Hive's load lets the source's win and forgets the others:
docs/hive/replication.md §22.
"""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.errors import MetaError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import MAX_ID, TxnId, WriteId
from hms_bridge.model.txn import TxnToWriteId
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.whole_lists import whole_lists

_UNKNOWN_WRITE_ID = "invalid write id"


def require_own(
    replica: Replica, table: str, pairs: Sequence[TxnToWriteId], where: str, *, is_committed: bool
) -> None:
    """Raises ReplError if the target has one of the source's write ids for somebody else.

    ``pairs``: transactions of the source, and write ids up to the highest of the target's table.
    Right are those that the transaction's replay has; those that the bootstrap brought; and where
    the source's transaction has not committed also aborted ones, which show nothing.
    """
    full_name = f"{replica.names.target_database}.{table}"
    for pair in pairs:
        if replica.has_allocated(table, pair):
            continue
        store = replica.metastore
        if replica.is_first_incremental(table) and has_no_owner(store, full_name, pair.write_id):
            continue
        if not is_committed and _is_aborted(store, full_name, pair.write_id):
            continue
        if not owns(store, full_name, replica.target_txn(pair.txn_id), pair.write_id):
            raise ReplError(
                f"{where}: write id {pair.write_id} of {full_name} is not that of the source's "
                f"transaction {pair.txn_id}: somebody else has written to the replica, and what "
                "the source wrote under this number could not be seen. " + replica.bring_anew(table)
            )


def owns(metastore: Metastore, table: str, txn_id: TxnId, write_id: WriteId) -> bool:
    """Whether a transaction has a write id of ``db.table``.

    To a snapshot in which this transaction alone is open, only its write id is.
    """
    only = ValidTxnList(high_watermark=TxnId(MAX_ID), open_ids=(txn_id,))
    (write_ids,) = metastore.get_valid_write_ids([table], only)
    return write_ids.is_open(write_id)


def has_no_owner(metastore: Metastore, table: str, write_id: WriteId) -> bool:
    """Whether no transaction of the metastore is known to have it.

    A snapshot from before all transactions sees such ids only; but where the list has no committed
    one it ends at the lowest that has an owner. Then the metastore is asked for the owner itself,
    and refuses an id of nobody (Hive: GetValidWriteIdsFunction.getTxnId).
    """
    (write_ids,) = metastore.get_valid_write_ids([table], ValidTxnList(high_watermark=TxnId(0)))
    if write_ids.is_valid(write_id):
        return True
    try:
        metastore.get_valid_write_ids([table], write_id=write_id)
    except MetaError as error:
        if _UNKNOWN_WRITE_ID in str(error).lower():
            return True
        raise
    return False


def _is_aborted(metastore: Metastore, table: str, write_id: WriteId) -> bool:
    (write_ids,) = whole_lists(metastore, [table], metastore.get_open_txns().snapshot())
    return write_ids.is_aborted(write_id)
