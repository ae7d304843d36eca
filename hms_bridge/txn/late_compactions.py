"""Compactions that outlive what they compact: a DROP or a RENAME without a lock while a worker is
at it.

A compacted directory shows its rows once its transaction counts as committed, whatever write ids
a table has. Transaction 12 compacts db.t up to write id 5; db.t is dropped and made again; the
worker brings base_5_v12, and dies. Nobody would remember 12, so the base would count: the old rows
would be back, and the first five writes of the new table hidden. So

* who drops or renames a table or partition aborts its compactions: a worker that goes on is
  refused;
* a transaction that compacted a table which went is remembered with the other late writers
  (:mod:`hms_bridge.txn.late_writers`), and stays aborted as long as they;
* a table that is made at the place is the one that such a compaction is of from then on, so that
  the cleaner looks there before the abort is forgotten. Where the partition is not there that was
  compacted, it looks into every directory of the table.

Hive forgets all of it (AcidEventListener, CleanupRecordsFunction; docs/hive/transactions.md §19).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, insert, select

from hms_bridge.backend.schema.txn_tables import COMPACTION_QUEUE, TXN_COMPONENTS, TXNS
from hms_bridge.backend.work import Work
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import Target
from hms_bridge.model.txn import AbortReason, TxnState, TxnType
from hms_bridge.txn.abort import AbortOutcome, abort_txns
from hms_bridge.txn.components import component_row

_C = TXN_COMPONENTS.c
_Q = COMPACTION_QUEUE.c


def is_compaction(number: ColumnElement[int]) -> ColumnElement[bool]:
    """Of TXN_TYPE."""
    return number.in_([int(kind) for kind in TxnType if kind.is_compaction])


def end_compactions(
    work: Work, table: Table, partitions: Collection[str] | None = None
) -> AbortOutcome:
    """Abort who compacts a table, or these partitions of it. The table's entries of the queue are
    held from here on, so nobody begins another compaction, or ends one."""
    connection = work.connection
    entries = select(_Q.CQ_ID).where(
        _Q.CQ_DATABASE == table.database_name, _Q.CQ_TABLE == table.name
    )
    connection.execute(entries.order_by(_Q.CQ_ID).with_for_update()).all()
    rows = connection.execute(_compacting(table).where(TXNS.c.TXN_STATE == TxnState.OPEN.value))
    ids = [row.txn_id for row in rows if partitions is None or row.partition in partitions]
    return abort_txns(work, ids, AbortReason.COMPACTION)


def compactions_of(
    connection: Connection, table: Table, is_wanted: ColumnElement[bool] | None = None
) -> list[tuple[TxnId, WriteId]]:
    """Transactions that compact a table, or parts of it, and up to where. ``is_wanted``: of TXNS;
    None for all."""
    compacting = _compacting(table)
    rows = connection.execute(compacting if is_wanted is None else compacting.where(is_wanted))
    highest: dict[TxnId, WriteId] = {}
    for row in rows:
        highest[row.txn_id] = max(highest.get(row.txn_id, WriteId(0)), row.highest)
    return list(highest.items())


def give_to(
    connection: Connection, table: Table, compactions: Sequence[tuple[TxnId, WriteId]]
) -> None:
    """Aborted compactions are of this table from now on, whatever they were of."""
    target = Target(table.database_name, table.name)
    known = {txn_id for txn_id, _ in compactions_of(connection, table)}
    rows = [
        component_row(txn_id, target, DataOperation.COMPACT, highest)
        for txn_id, highest in compactions
        if txn_id not in known
    ]
    if rows:
        connection.execute(insert(TXN_COMPONENTS), rows)


def _compacting(table: Table) -> Select[Any]:
    return (
        select(
            _C.TC_TXNID.label("txn_id"),
            _C.TC_PARTITION.label("partition"),
            func.coalesce(_C.TC_WRITEID, 0).label("highest"),
        )
        .join_from(TXN_COMPONENTS, TXNS, TXNS.c.TXN_ID == _C.TC_TXNID)
        .where(_is_compaction_of(table))
    )


def _is_compaction_of(table: Table) -> ColumnElement[bool]:
    return and_(
        _C.TC_DATABASE == table.database_name,
        _C.TC_TABLE == table.name,
        _C.TC_OPERATION_TYPE == DataOperation.COMPACT.stored,
    )
