"""What readers registered that they may still need (MIN_HISTORY_WRITE_ID).

Kept for Hive's Cleaner, which trusts these rows alone by default since 4.2
(docs/hive/transactions.md §16), and takes what a reader of Hive's still needs: that reader asks for
its lowest open id, or the one after its last, though a compaction that it does not see may end
right below. So what is asked for is lowered before it is kept.

The cleaner here needs no ids: an entry is ready only when every open transaction that may read of
its database began after its compaction was committed (:mod:`hms_bridge.txn.cleaning`). It takes
from the rows only which databases a transaction reads (:mod:`hms_bridge.txn.readers`). Rows end
with their transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import BigInteger, Connection, bindparam, or_, select

from hms_bridge.backend.fixed_sql import FixedInsert
from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, MIN_HISTORY_WRITE_ID
from hms_bridge.backend.text_keyed_sql import TextKeyedSql
from hms_bridge.model.compaction import CompactionState, CompactionType
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.target import TableName
from hms_bridge.txn.txn_state import lock_open_txn

_Q = COMPACTION_QUEUE.c
_LOWEST = WriteId(1)
_UNDER_WAY = (CompactionState.WORKING.stored, CompactionState.READY_FOR_CLEANING.stored)
_TXN_ID = bindparam("txn_id", type_=BigInteger)
_PUT = FixedInsert(MIN_HISTORY_WRITE_ID)
_UNSEEN = TextKeyedSql(
    _Q.CQ_DATABASE,
    lambda is_among: select(_Q.CQ_DATABASE, _Q.CQ_TABLE, _Q.CQ_HIGHEST_WRITE_ID).where(
        is_among,
        or_(*(_Q.CQ_STATE == state for state in _UNDER_WAY)),
        _Q.CQ_TYPE != CompactionType.ABORT_TXN_CLEANUP.stored,
        or_(_Q.CQ_TXN_ID.is_(None), _Q.CQ_TXN_ID != _TXN_ID),
        or_(
            _Q.CQ_NEXT_TXN_ID.is_(None),
            _Q.CQ_NEXT_TXN_ID == 0,
            _Q.CQ_NEXT_TXN_ID >= _TXN_ID,
        ),
    ),
)


def add_write_ids(connection: Connection, txn_id: TxnId, write_ids: Mapping[str, WriteId]) -> None:
    """Register ids by ``database.table``; again is harmless, the lowest counts.

    Kept is less than what is asked for: one less, since a compaction that begins later may cover
    the ids below; and no more than what a compaction covers that the transaction does not see.

    Raises NoSuchTxnError, TxnAbortedError; MetaError for a name without a database. Unlike Hive's,
    which would add rows to a transaction that was aborted meanwhile, and never remove them.
    """
    lock_open_txn(connection, txn_id)
    asked = [(TableName.parse(name.lower()), write_id) for name, write_id in write_ids.items()]
    databases = {table.database for table, _ in asked}
    unseen = _unseen_compactions(connection, txn_id, databases)
    rows = [
        {
            "MH_TXNID": txn_id,
            "MH_DATABASE": table.database,
            "MH_TABLE": table.table,
            "MH_WRITEID": max(min(write_id - 1, unseen.get(table, write_id)), _LOWEST),
        }
        for table, write_id in asked
    ]
    _PUT.put(connection, rows)


def _unseen_compactions(
    connection: Connection, txn_id: TxnId, databases: Collection[str]
) -> dict[TableName, int]:
    """By table, the lowest id at which a compaction ends that is under way, or was committed after
    the transaction began; the lowest of all for one that does not say yet what it covers. Not the
    compaction that the transaction is: nobody else works on its target."""
    unseen: dict[TableName, int] = {}
    for database, table, highest in _UNSEEN.all(connection, sorted(databases), txn_id=txn_id):
        name = TableName.lower(database, table)
        unseen[name] = min(unseen.get(name, highest or _LOWEST), highest or _LOWEST)
    return unseen
