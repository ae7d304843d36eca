"""What readers registered that they may still need (MIN_HISTORY_WRITE_ID).

Kept for Hive's Cleaner, which trusts these rows alone by default since 4.2
(docs/hive/transactions.md §16). The cleaner here needs no ids: an entry is ready only when every
open transaction that may read of its database began after its compaction was committed
(:mod:`hms_bridge.txn.cleaning`). It takes from the rows only which databases a transaction reads
(:mod:`hms_bridge.txn.readers`). Rows end with their transaction.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, insert

from hms_bridge.backend.schema.txn_tables import MIN_HISTORY_WRITE_ID
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.target import TableName
from hms_bridge.txn.txn_state import lock_open_txn


def add_write_ids(connection: Connection, txn_id: TxnId, write_ids: Mapping[str, WriteId]) -> None:
    """Register ids by ``database.table``; again is harmless, the lowest counts.

    Raises NoSuchTxnError, TxnAbortedError; MetaError for a name without a database. Unlike Hive's,
    which would add rows to a transaction that was aborted meanwhile, and never remove them.
    """
    lock_open_txn(connection, txn_id)
    rows = []
    for name, write_id in write_ids.items():
        table = TableName.parse(name.lower())
        rows.append(
            {
                "MH_TXNID": txn_id,
                "MH_DATABASE": table.database,
                "MH_TABLE": table.table,
                "MH_WRITEID": write_id,
            }
        )
    if rows:
        connection.execute(insert(MIN_HISTORY_WRITE_ID), rows)
