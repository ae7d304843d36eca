"""Commits that conflict with nobody, on PostgreSQL in one go: of one transaction, or of several at
once (:mod:`hms_bridge.txn.commit` has the rules, and all other commits)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    type_coerce,
    update,
)

from hms_bridge.backend.batches import is_among_few, keys_text
from hms_bridge.backend.dialect import or_fault
from hms_bridge.backend.fixed_sql import FixedSql, json_rows
from hms_bridge.backend.schema.metadata import LETTER
from hms_bridge.backend.schema.txn_tables import (
    COMPLETED_TXN_COMPONENTS,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import CHANGES, DataOperation
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.txn.abort import OPEN_ONLY
from hms_bridge.txn.foresight import KINDS, ExpectedWrites
from hms_bridge.txn.txn_state import OPEN, LockedTxns, TxnRow
from hms_bridge.txn.write_ids import WrittenTable, WrittenTables

_C = TXN_COMPONENTS.c
_W = TXN_TO_WRITE_ID.c
_WRITTEN = ("T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID")
CHANGING = tuple(operation.stored for operation in CHANGES)
"""What components that change rows have as their operation."""
COMPLETED_COLUMNS = (
    "CTC_TXNID",
    "CTC_DATABASE",
    "CTC_TABLE",
    "CTC_PARTITION",
    "CTC_WRITEID",
    "CTC_UPDATE_DELETE",
)
"""What is written of components that are committed."""
FORGOTTEN: Mapping[Table, ColumnElement[int]] = {TXN_COMPONENTS: _C.TC_TXNID, **OPEN_ONLY}
"""Tables whose rows end with the commit of their transaction, and the column that names it."""
_KIND = func.coalesce(TXNS.c.TXN_TYPE, literal(0, Integer))
_IsMine = Callable[[ColumnElement[int]], ColumnElement[bool]]


def completed_rows(is_mine: ColumnElement[bool], has_changes: ColumnElement[Any]) -> Select[Any]:
    """What is written of components that are committed, in the order of COMPLETED_COLUMNS."""
    return select(
        _C.TC_TXNID,
        _C.TC_DATABASE,
        _C.TC_TABLE,
        _C.TC_PARTITION,
        _C.TC_WRITEID,
        has_changes,
    ).where(is_mine, _C.TC_OPERATION_TYPE != DataOperation.COMPACT.stored)


def is_there(condition: ColumnElement[bool]) -> ColumnElement[int]:
    """Whether there is such a row, as a number."""
    # Not exists() alone: a type that is no number would be converted on the way.
    return type_coerce(exists().where(condition), Integer)


def _one(column: ColumnElement[int]) -> ColumnElement[bool]:
    return column == bindparam("txn_id", type_=BigInteger)


def _several(column: ColumnElement[int]) -> ColumnElement[bool]:
    return is_among_few(column, "txn_ids")


def _given(txn_ids: Sequence[TxnId]) -> dict[str, Any]:
    """The values of :func:`_one` for one of them, of :func:`_several` and their count for more."""
    if len(txn_ids) == 1:
        return {"txn_id": txn_ids[0]}
    return {"txn_ids": keys_text(txn_ids), "count": len(txn_ids)}


def _ended(is_mine: _IsMine, condition: ColumnElement[bool]) -> CTE:
    """End those that are open, if the condition holds and none changed what others may, too."""
    kinds = or_(*(_C.TC_OPERATION_TYPE == kind for kind in CHANGING))
    changes = exists().where(is_mine(_C.TC_TXNID), kinds)
    return (
        update(TXNS)
        .where(is_mine(TXNS.c.TXN_ID), TXNS.c.TXN_STATE == OPEN, ~changes, condition)
        .values(TXN_STATE=TxnState.COMMITTED.value)
        .returning(TXNS.c.TXN_ID, _KIND.label("kind"))
        .cte("ended")
    )


def _completed(is_mine: _IsMine, is_due: ColumnElement[bool]) -> CTE:
    """What they wrote, for the initiator."""
    written = completed_rows(is_mine(_C.TC_TXNID), literal("N", LETTER)).where(is_due)
    return insert(COMPLETED_TXN_COMPONENTS).from_select(COMPLETED_COLUMNS, written).cte("completed")


def _forgotten(is_mine: _IsMine, *conditions: ColumnElement[bool]) -> Sequence[CTE]:
    """Drop what only open ones need."""
    return [
        delete(table).where(is_mine(column), *conditions).cte(f"of_{table.name.lower()}")
        for table, column in FORGOTTEN.items()
    ]


# Every part of these statements sees the rows as they were before all of them. The transactions'
# rows are locked, so nobody adds any meanwhile.
def _end(is_mine: _IsMine, kinds: Sequence[TxnType], count: ColumnElement[int]) -> Select[Any]:
    """End them; nothing is done, and there is no row, unless all ``count`` are open ones of these
    kinds, and none changed what others may change, too."""
    is_of_kind = or_(*(literal(int(kind), Integer) == _KIND for kind in kinds))
    is_plain = (
        select(func.count())
        .select_from(TXNS)
        .where(is_mine(TXNS.c.TXN_ID), TXNS.c.TXN_STATE == OPEN, is_of_kind)
        .correlate(None)
        .scalar_subquery()
    )
    ended = _ended(is_mine, is_plain == count)
    has_written = exists().where(
        ended.c.TXN_ID == _C.TC_TXNID,
        ended.c.kind != literal(int(TxnType.READ_ONLY), Integer),
    )
    is_ended = exists(select(ended.c.TXN_ID))
    return select(ended.c.TXN_ID).add_cte(
        _completed(is_mine, has_written), *_forgotten(is_mine, is_ended)
    )


def _end_as_expected(
    is_mine: _IsMine, count: ColumnElement[int], *, has_written: bool
) -> Select[Any]:
    """Fails unless they are ended, are of one ``kind``, and have these write ids. So no part asks
    whether the others do what they do."""
    kind = bindparam("kind", type_=Integer)
    ended = _ended(is_mine, kind == _KIND)
    mine = select(func.count()).where(is_mine(_W.T2W_TXNID))
    is_as_expected = func.count() == count
    if has_written:
        given = json_rows("written", TXN_TO_WRITE_ID, _WRITTEN)
        is_given = and_(*(given.c[name] == _W[name] for name in _WRITTEN))
        written_count = bindparam("written_count", type_=BigInteger)
        there = mine.where(exists().where(is_given))
        is_as_expected &= there.scalar_subquery() == written_count
        is_as_expected &= mine.scalar_subquery() == written_count
    else:
        is_as_expected &= ~exists().where(is_mine(_W.T2W_TXNID))
    checked = or_fault(func.count(), is_as_expected, "a transaction has written something else")
    is_due = kind != literal(int(TxnType.READ_ONLY), Integer)
    return (
        select(checked)
        .select_from(ended)
        .add_cte(_completed(is_mine, is_due), *_forgotten(is_mine))
    )


_END_AT_ONCE = FixedSql(_end(_one, (TxnType.DEFAULT, TxnType.READ_ONLY), literal(1, BigInteger)))
_COUNT = bindparam("count", type_=BigInteger)
_END_ALL_AT_ONCE = FixedSql(_end(_several, (TxnType.DEFAULT,), _COUNT))
_END_AS_EXPECTED = {
    (is_single, has_written): FixedSql(
        _end_as_expected(
            _one if is_single else _several,
            literal(1, BigInteger) if is_single else _COUNT,
            has_written=has_written,
        )
    )
    for is_single in (False, True)
    for has_written in (False, True)
}


def expect_ends(
    connection: Connection, txn_ids: Sequence[TxnId], expected: Sequence[ExpectedWrites]
) -> bool:
    """End transactions, with nothing against it, that wrote what is expected; else the statement
    fails, when it is done. False, and nothing is asked, where they are of several kinds, or of one
    whose commit does more."""
    kinds = {writes.kind for writes in expected}
    if len(kinds) > 1 or not kinds <= KINDS:
        return False
    (kind,) = kinds
    rows = [
        dict(zip(_WRITTEN, (txn_id, *write), strict=True))
        for txn_id, writes in zip(txn_ids, expected, strict=True)
        for write in writes.written
    ]
    given = {"kind": int(kind), **_given(txn_ids)}
    if rows:
        given |= {"written": json.dumps(rows), "written_count": len(rows)}
    LockedTxns(connection, txn_ids)
    _END_AS_EXPECTED[len(txn_ids) == 1, bool(rows)].later(connection, **given)
    return True


class PlainEnd:
    """Transactions whose rows are locked, and which are ended, all or none, if nothing stands
    against it."""

    def __init__(self, connection: Connection, txn_ids: Sequence[TxnId]) -> None:
        self._locked = LockedTxns(connection, txn_ids)
        end = _END_AT_ONCE if len(txn_ids) == 1 else _END_ALL_AT_ONCE
        self._ended = end.later(connection, **_given(txn_ids))
        self._written = WrittenTables(connection, txn_ids)

    @property
    def is_done(self) -> bool:
        """Whether they are committed."""
        return bool(self._ended.rows)

    @property
    def rows(self) -> Mapping[TxnId, TxnRow]:
        """As they were."""
        return self._locked.rows

    @property
    def written(self) -> Mapping[TxnId, Sequence[WrittenTable]]:
        """The write ids that they have taken."""
        return self._written.by_txn
