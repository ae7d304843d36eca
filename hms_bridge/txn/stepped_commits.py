"""Commits that conflict with nobody, of several transactions at once, where a statement changes one
table: on MySQL (:mod:`hms_bridge.txn.commit` has the rules, and all other commits)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    Connection,
    Table,
    and_,
    delete,
    insert,
    literal,
    select,
    update,
)

from hms_bridge.backend.schema.metadata import LETTER
from hms_bridge.backend.schema.txn_tables import COMPLETED_TXN_COMPONENTS, TXN_COMPONENTS, TXNS
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.txn.plain_commits import (
    CHANGING,
    COMPLETED_COLUMNS,
    FORGOTTEN,
    completed_rows,
    is_there,
)
from hms_bridge.txn.txn_state import LockedTxns, TxnRow
from hms_bridge.txn.write_ids import WrittenTable, written_tables

_C = TXN_COMPONENTS.c


class SteppedEnd:
    """As :class:`hms_bridge.txn.plain_commits.PlainEnd`; all is done when it is made."""

    def __init__(self, connection: Connection, txn_ids: Sequence[TxnId]) -> None:
        self.rows: Mapping[TxnId, TxnRow] = LockedTxns(connection, txn_ids).rows
        self.written: Mapping[TxnId, Sequence[WrittenTable]] = {}
        self.is_done = False
        if set(self.rows.values()) != {TxnRow(TxnState.OPEN, TxnType.DEFAULT)}:
            return
        if len(self.rows) < len(txn_ids):
            return
        # Nobody adds any meanwhile: for that a transaction's row is locked.
        has_changes, *has_rows = connection.execute(
            select(
                is_there(and_(_C.TC_TXNID.in_(txn_ids), _C.TC_OPERATION_TYPE.in_(CHANGING))),
                *(is_there(column.in_(txn_ids)) for column in FORGOTTEN.values()),
            )
        ).one()
        if has_changes:
            return
        self.written = written_tables(connection, txn_ids)
        _end(connection, txn_ids, dict(zip(FORGOTTEN, has_rows, strict=True)))
        self.is_done = True


def _end(connection: Connection, txn_ids: Sequence[TxnId], has_rows: Mapping[Table, bool]) -> None:
    if has_rows[TXN_COMPONENTS]:
        written = completed_rows(_C.TC_TXNID.in_(txn_ids), literal("N", LETTER))
        connection.execute(insert(COMPLETED_TXN_COMPONENTS).from_select(COMPLETED_COLUMNS, written))
    for table, column in FORGOTTEN.items():
        if has_rows[table]:
            connection.execute(delete(table).where(column.in_(txn_ids)))
    committed = update(TXNS).where(TXNS.c.TXN_ID.in_(txn_ids))
    connection.execute(committed.values(TXN_STATE=TxnState.COMMITTED.value))
