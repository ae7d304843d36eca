"""Write ids for who is likely to have none yet, on PostgreSQL in one go
(:mod:`hms_bridge.txn.write_ids` has the rules)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    and_,
    bindparam,
    cast,
    exists,
    func,
    insert,
    literal_column,
    select,
    true,
    update,
)

from hms_bridge.backend.batches import is_among_few, keys_text
from hms_bridge.backend.dialect import is_postgresql, or_fault
from hms_bridge.backend.fixed_sql import FixedSql, KeyedSql, locking
from hms_bridge.backend.prepared_text import Answer
from hms_bridge.backend.schema.txn_tables import (
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.txn import TxnToWriteId, TxnType
from hms_bridge.txn.txn_state import OPEN

_COUNT = bindparam("count", type_=BigInteger)
_N = NEXT_WRITE_ID.c
_W = TXN_TO_WRITE_ID.c
HERE = {
    "database": bindparam("database", type_=String),
    "table": bindparam("table", type_=String),
}
"""Parameters that name a table."""
IS_HERE = and_(_W.T2W_DATABASE == HERE["database"], _W.T2W_TABLE == HERE["table"])
"""TXN_TO_WRITE_ID rows of the table that these name."""
# Written out: with values beside the text, a plan for these would look cheaper than one that is
# kept.
_READ_ONLY: ColumnElement[int] = literal_column(str(int(TxnType.READ_ONLY)))
_IS_WRITER = and_(
    TXNS.c.TXN_STATE == OPEN,
    (TXNS.c.TXN_TYPE.is_(None)) | (TXNS.c.TXN_TYPE != _READ_ONLY),
)
LOCK_WRITERS = locking(TXNS.c.TXN_ID, select(TXNS.c.TXN_ID).where(_IS_WRITER).where)
HELD = KeyedSql(
    _W.T2W_TXNID,
    lambda is_of_txn: select(_W.T2W_TXNID, _W.T2W_WRITEID).where(IS_HERE, is_of_txn),
)


def _given(*conditions: ColumnElement[bool]) -> tuple[CTE, Sequence[CTE]]:
    """Count, write down and note in the locks that came first, in one statement; no row, and
    nothing done, unless all are writers without an id and the table has a counter. Their rows are
    locked. What is given, and what else is done."""
    asked = (
        select(
            TXNS.c.TXN_ID.label("id"),
            (func.row_number().over(order_by=TXNS.c.TXN_ID) - 1).label("place"),
        )
        .where(is_among_few(TXNS.c.TXN_ID, "keys"), _IS_WRITER)
        .cte("asked")
    )
    are_all = select(func.count()).select_from(asked).scalar_subquery() == _COUNT
    is_held = exists().where(IS_HERE, is_among_few(_W.T2W_TXNID, "keys"))
    taken = (
        update(NEXT_WRITE_ID)
        .where(
            _N.NWI_DATABASE == HERE["database"],
            _N.NWI_TABLE == HERE["table"],
            are_all,
            ~is_held,
            *conditions,
        )
        .values({_N.NWI_NEXT: _N.NWI_NEXT + _COUNT})
        .returning((_N.NWI_NEXT - _COUNT).label("first"))
        .cte("taken")
    )
    write_id = cast(taken.c.first + asked.c.place, BigInteger)
    given = (
        select(asked.c.id.label("txn_id"), write_id.label("write_id"))
        .join_from(asked, taken, true())
        .cte("given")
    )
    names = ("T2W_TXNID", "T2W_DATABASE", "T2W_TABLE", "T2W_WRITEID")
    row = select(given.c.txn_id, HERE["database"], HERE["table"], given.c.write_id)
    c = TXN_COMPONENTS.c
    informed = (
        update(TXN_COMPONENTS)
        .where(
            given.c.txn_id == c.TC_TXNID,
            c.TC_DATABASE == HERE["database"],
            c.TC_TABLE == HERE["table"],
            c.TC_OPERATION_TYPE != DataOperation.COMPACT.stored,
        )
        .values(TC_WRITEID=given.c.write_id)
    )
    written = insert(TXN_TO_WRITE_ID).from_select(names, row)
    return given, (written.cte("written"), informed.cte("informed"))


def _give_at_once() -> Select[Any]:
    given, others = _given()
    return select(given.c.txn_id, given.c.write_id).add_cte(*others)


def _give_as_expected() -> Select[Any]:
    """Fails unless all get one, from ``first`` on."""
    given, others = _given(_N.NWI_NEXT == bindparam("first", type_=BigInteger))
    checked = or_fault(func.count(), func.count() == _COUNT, "other write ids are given")
    return select(checked).select_from(given).add_cte(*others)


_GIVE_AT_ONCE = FixedSql(_give_at_once())
_GIVE_AS_EXPECTED = FixedSql(_give_as_expected())


def expect_write_ids(
    connection: Connection, txn_ids: Sequence[TxnId], database: str, table: str, first: WriteId
) -> tuple[TxnToWriteId, ...]:
    """Write ids for writers without one, if the next one is ``first``; else the statement fails,
    when it is done. Names in lower case, transactions ascending."""
    LOCK_WRITERS.later(connection, txn_ids)
    here = {"database": database, "table": table}
    _GIVE_AS_EXPECTED.later(
        connection, keys=keys_text(txn_ids), count=len(txn_ids), first=first, **here
    )
    return tuple(
        TxnToWriteId(txn_id=txn_id, write_id=WriteId(first + place))
        for place, txn_id in enumerate(txn_ids)
    )


class AskedWriteIds:
    """Write ids for transactions that are likely to have none yet, on their way: see ``later``."""

    def __init__(
        self, connection: Connection, txn_ids: Sequence[TxnId], database: str, table: str
    ) -> None:
        self._txn_ids = txn_ids
        self._writers = LOCK_WRITERS.later(connection, txn_ids)
        here = {"database": database, "table": table}
        self._held = HELD.later(connection, txn_ids, **here)
        self._given: Answer | None = None
        if is_postgresql(connection):
            self._given = _GIVE_AT_ONCE.later(
                connection, keys=keys_text(txn_ids), count=len(txn_ids), **here
            )

    @property
    def writers(self) -> frozenset[TxnId]:
        """Those that may have one."""
        return frozenset(TxnId(txn_id) for (txn_id,) in self._writers.rows)

    @property
    def held(self) -> dict[TxnId, WriteId]:
        """The write ids that some had."""
        return {TxnId(txn_id): WriteId(write_id) for txn_id, write_id in self._held.rows}

    @property
    def given(self) -> tuple[TxnToWriteId, ...]:
        """New ones for all; empty if it was not as is likely, and nothing was done."""
        rows = () if self._given is None else sorted(self._given.rows)
        return tuple(
            TxnToWriteId(txn_id=TxnId(txn_id), write_id=WriteId(write_id))
            for txn_id, write_id in rows
        )
