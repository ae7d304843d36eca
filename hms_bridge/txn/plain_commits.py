"""Commits that conflict with nobody, on PostgreSQL in one statement: of one transaction, or of
several at once (:mod:`hms_bridge.txn.commit` has the rules, and all other commits)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.schema.metadata import LETTER
from hms_bridge.backend.schema.txn_tables import (
    COMPLETED_TXN_COMPONENTS,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.txn.abort import OPEN_ONLY
from hms_bridge.txn.txn_state import TxnRow

PLAIN = frozenset({TxnType.DEFAULT, TxnType.READ_ONLY})
"""Kinds of transactions that may have nothing to settle."""

_C = TXN_COMPONENTS.c
_CHANGES = (DataOperation.UPDATE.stored, DataOperation.DELETE.stored)
_COMPLETED = (
    "CTC_TXNID",
    "CTC_DATABASE",
    "CTC_TABLE",
    "CTC_PARTITION",
    "CTC_WRITEID",
    "CTC_UPDATE_DELETE",
)
_IsMine = Callable[[ColumnElement[int]], ColumnElement[bool]]


def _one(column: ColumnElement[int]) -> ColumnElement[bool]:
    return column == bindparam("txn_id", type_=BigInteger)


def _several(column: ColumnElement[int]) -> ColumnElement[bool]:
    ids = func.json_array_elements_text(cast(bindparam("txn_ids", type_=Text), JSON))
    return column.in_(select(cast(ids.column_valued("id"), BigInteger)))


def _end(is_mine: _IsMine) -> Select[Any]:
    """End them, and drop what only open ones need; nothing, and no row, if one changed something.

    Every part sees the rows as they were before all of them. The caller holds the transactions'
    rows, so nobody adds any meanwhile.
    """
    changes = exists().where(
        is_mine(_C.TC_TXNID), or_(*(_C.TC_OPERATION_TYPE == kind for kind in _CHANGES))
    )
    ended = (
        update(TXNS)
        .where(is_mine(TXNS.c.TXN_ID), ~changes)
        .values(TXN_STATE=TxnState.COMMITTED.value)
        .returning(TXNS.c.TXN_ID)
        .cte("ended")
    )
    is_ended = exists(select(ended.c.TXN_ID))
    written = select(
        _C.TC_TXNID,
        _C.TC_DATABASE,
        _C.TC_TABLE,
        _C.TC_PARTITION,
        _C.TC_WRITEID,
        literal("N", LETTER),
    ).where(
        is_mine(_C.TC_TXNID),
        _C.TC_OPERATION_TYPE != DataOperation.COMPACT.stored,
        bindparam("is_written", type_=Integer) == literal(1, Integer),
        is_ended,
    )
    forgotten = {TXN_COMPONENTS: _C.TC_TXNID, **OPEN_ONLY}
    has_write_ids = exists().where(ended.c.TXN_ID == TXN_TO_WRITE_ID.c.T2W_TXNID)
    return select(ended.c.TXN_ID, case((has_write_ids, 1), else_=0)).add_cte(
        insert(COMPLETED_TXN_COMPONENTS).from_select(_COMPLETED, written).cte("completed"),
        *(
            delete(table).where(is_mine(column), is_ended).cte(f"of_{table.name.lower()}")
            for table, column in forgotten.items()
        ),
    )


_END_AT_ONCE, _END_ALL_AT_ONCE = FixedSql(_end(_one)), FixedSql(_end(_several))
_LOCK_ALL_AT_ONCE = FixedSql(
    select(TXNS.c.TXN_ID, TXNS.c.TXN_STATE, TXNS.c.TXN_TYPE)
    .where(_several(TXNS.c.TXN_ID))
    .order_by(TXNS.c.TXN_ID)
    .with_for_update()
)


def lock_all(connection: Connection, txn_ids: Sequence[TxnId]) -> dict[TxnId, TxnRow]:
    """Lock the rows of transactions, in the order of their ids, so that nobody ends them."""
    rows = _LOCK_ALL_AT_ONCE.all(connection, txn_ids=json.dumps(txn_ids))
    return {
        TxnId(txn_id): TxnRow(TxnState(state), TxnType(kind or 0)) for txn_id, state, kind in rows
    }


def end_plain(
    connection: Connection, txn_ids: Sequence[TxnId], kind: TxnType
) -> frozenset[TxnId] | None:
    """End open transactions of one kind, whose rows the caller has locked; those of them that have
    write ids. None, and nothing is done, if one has changed rows that others may change, too."""
    given = {"is_written": int(kind is not TxnType.READ_ONLY)}
    if len(txn_ids) == 1:
        rows = _END_AT_ONCE.all(connection, txn_id=txn_ids[0], **given)
    else:
        rows = _END_ALL_AT_ONCE.all(connection, txn_ids=json.dumps(txn_ids), **given)
    if not rows:
        return None
    return frozenset(TxnId(txn_id) for txn_id, has_write_ids in rows if has_write_ids)
