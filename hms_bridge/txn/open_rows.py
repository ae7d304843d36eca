"""The rows of new transactions, as statements: for who knows from where on others may be open, for
who looks that up, and for who expects which id is the next."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Engine,
    Insert,
    Select,
    Text,
    and_,
    bindparam,
    func,
    insert,
    literal,
    select,
)
from sqlalchemy.sql.dml import ReturningInsert

from hms_bridge.backend.batches import given_keys, keys_text
from hms_bridge.backend.dialect import last_txn_id, next_txn_id, or_fault, txn_sequence
from hms_bridge.backend.fixed_sql import FixedSql, TimedSql
from hms_bridge.backend.schema.txn_tables import MIN_HISTORY_LEVEL, TXNS
from hms_bridge.backend.work import Work
from hms_bridge.model.ids import MAX_ID, TxnId
from hms_bridge.model.txn import OpenTxnsRequest, TxnState
from hms_bridge.txn.low_boundary import boundary


def row_of(request: OpenTxnsRequest) -> dict[str, Any]:
    """The columns of a new row, but for its id and its times."""
    return {
        "TXN_STATE": TxnState.OPEN.value,
        "TXN_USER": request.user,
        "TXN_HOST": request.host,
        "TXN_AGENT_INFO": request.agent,
        "TXN_TYPE": int(request.type),
    }


def given_row(request: OpenTxnsRequest) -> dict[str, Any]:
    """The same as values of these statements."""
    return {f"given_{name}": value for name, value in row_of(request).items()}


_SEQUENCES: WeakKeyDictionary[Engine, str] = WeakKeyDictionary()
_SEQUENCE = FixedSql(select(txn_sequence()))


def expect_rows(
    work: Work, request: OpenTxnsRequest, first: TxnId, count: int, known: TxnId
) -> None:
    """Rows of transactions whose ids are ``first`` and those after it; else the statement fails,
    when it is done. All up to ``known`` have ended. On PostgreSQL only."""
    connection = work.connection
    sequence = _SEQUENCES.get(connection.engine)
    if sequence is None:
        ((sequence,),) = _SEQUENCE.all(connection)
        _SEQUENCES[connection.engine] = sequence
    values = {"sequence": sequence, "first": first, **given_row(request)}
    if count == 1:
        _OPEN_ONE_AS_EXPECTED.later(work, **values)
        _REMEMBER_AS_EXPECTED.later(connection, first=first, known=known)
    else:
        places = keys_text(range(count))
        _OPEN_AS_EXPECTED.later(work, known=known, count=count, places=places, **values)


# All up to a boundary that is remembered have ended, and none of those can appear.
_LOWEST_KNOWN = bindparam("known", type_=BigInteger) + literal(1, BigInteger)
LOWEST_OPEN = select(func.min(TXNS.c.TXN_ID)).where(TXNS.c.TXN_STATE == TxnState.OPEN.value)
_FIRST = bindparam("first", type_=BigInteger)
_GIVEN_SEQUENCE: ColumnElement[str] = bindparam("sequence", type_=Text)
_OTHERS = "others opened transactions meanwhile"


def _values(row_time: ColumnElement[int]) -> dict[Any, Any]:
    """The columns of a new row with its times, but for its id."""
    t = TXNS.c
    given = (t.TXN_STATE, t.TXN_USER, t.TXN_HOST, t.TXN_AGENT_INFO, t.TXN_TYPE)
    values: dict[Any, Any] = {
        column: bindparam(f"given_{column.name}", type_=column.type) for column in given
    }
    return values | {t.TXN_STARTED: row_time, t.TXN_LAST_HEARTBEAT: row_time}


def _insert_row(_now: ColumnElement[int], row_time: ColumnElement[int]) -> Insert:
    return insert(TXNS).values(_values(row_time))


def _insert_one(
    now: ColumnElement[int], row_time: ColumnElement[int]
) -> ReturningInsert[tuple[int]]:
    return _insert_row(now, row_time).returning(TXNS.c.TXN_ID)


def _new_rows(
    row_time: ColumnElement[int], sequence: ColumnElement[str], *conditions: ColumnElement[bool]
) -> CTE:
    """New rows. Their ids are drawn first, so that no row is older than its id; none unless the
    conditions hold."""
    # Of a list, not of a number: PostgreSQL takes an unknown number for a thousand, and would make
    # a new plan each time.
    drawing = select(next_txn_id(sequence).label("id")).select_from(given_keys("places"))
    drawn = drawing.where(*conditions).cte("drawn")
    values = _values(row_time)
    opening = insert(TXNS).from_select(
        [TXNS.c.TXN_ID, *values], select(drawn.c.id, *values.values())
    )
    return opening.returning(TXNS.c.TXN_ID).cte("opened")


def _remembering(opened: CTE, min_open: ColumnElement[int]) -> ReturningInsert[tuple[int, int]]:
    """The rows that keep what was open from being purged, in the statement that opens."""
    history = MIN_HISTORY_LEVEL.c
    return (
        insert(MIN_HISTORY_LEVEL)
        .from_select(
            [history.MHL_TXNID, history.MHL_MIN_OPEN_TXNID], select(opened.c.TXN_ID, min_open)
        )
        .returning(history.MHL_TXNID, history.MHL_MIN_OPEN_TXNID)
    )


def _open_at_once(
    now: ColumnElement[int], row_time: ColumnElement[int]
) -> ReturningInsert[tuple[int, int]]:
    """Who looks the boundary up. All that is read is what was there before the new rows."""
    opened, one = _new_rows(row_time, txn_sequence()), literal(1, BigInteger)
    lowest = func.coalesce(LOWEST_OPEN.scalar_subquery(), literal(MAX_ID, BigInteger))
    last_old = func.coalesce(boundary(now), literal(0, BigInteger))
    first = select(func.min(opened.c.TXN_ID)).scalar_subquery()
    return _remembering(opened, func.least(first, lowest, last_old + one))


def _open_known_at_once(
    _now: ColumnElement[int], row_time: ColumnElement[int]
) -> ReturningInsert[tuple[int, int]]:
    """Who knows the boundary. Not one text with the other, with what is known in a COALESCE: its
    plan for a value leaves out half of the statement, and so always looks cheaper to PostgreSQL
    than one that it could keep."""
    return _remembering(_new_rows(row_time, txn_sequence()), _LOWEST_KNOWN)


def _open_as_expected(_now: ColumnElement[int], row_time: ColumnElement[int]) -> Select[Any]:
    """Fails unless the ids are ``count`` from ``first`` on. To see before they are drawn whether
    they will be, spares gaps; but not where something else of the message fails: the next ids are
    then not as expected either."""
    count, one = bindparam("count", type_=BigInteger), literal(1, BigInteger)
    is_next = select(last_txn_id(_GIVEN_SEQUENCE)).scalar_subquery() == _FIRST - one
    opened = _remembering(_new_rows(row_time, _GIVEN_SEQUENCE, is_next), _LOWEST_KNOWN).cte("kept")
    ids = opened.c.MHL_TXNID
    is_so = and_(
        func.count() == count, func.min(ids) == _FIRST, func.max(ids) == _FIRST + count - one
    )
    return select(or_fault(func.min(ids), is_so, _OTHERS)).select_from(opened)


def _open_one_as_expected(now: ColumnElement[int], row_time: ColumnElement[int]) -> Insert:
    """The same of a single one, as it nearly always is: without the parts that PostgreSQL takes
    longer to set up than to carry out. The id stands before the time in a row, so it is drawn
    before that is asked for."""
    last = last_txn_id(_GIVEN_SEQUENCE)
    drawn = or_fault(_FIRST, next_txn_id(_GIVEN_SEQUENCE) == _FIRST, _OTHERS, last)
    is_next = last == _FIRST - literal(1, BigInteger)
    return _insert_row(now, row_time).values(
        {TXNS.c.TXN_ID: or_fault(drawn, is_next, _OTHERS, last)}
    )


INSERT_ROW, INSERT_ONE = TimedSql(_insert_row), TimedSql(_insert_one)
OPEN_AT_ONCE, OPEN_KNOWN_AT_ONCE = TimedSql(_open_at_once), TimedSql(_open_known_at_once)
_OPEN_AS_EXPECTED = TimedSql(_open_as_expected)
_OPEN_ONE_AS_EXPECTED = TimedSql(_open_one_as_expected)
_REMEMBER_AS_EXPECTED = FixedSql(
    insert(MIN_HISTORY_LEVEL).values(MHL_TXNID=_FIRST, MHL_MIN_OPEN_TXNID=_LOWEST_KNOWN)
)
