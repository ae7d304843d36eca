"""Up to which id no transaction can appear any more (Hive: OpenTxnTimeoutLowBoundaryTxnIdHandler;
docs/hive/transactions.md §4): the last one that is older than openers may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Engine,
    ScalarSelect,
    Select,
    bindparam,
    cast,
    select,
)

from hms_bridge.backend.fixed_sql import TimedSql
from hms_bridge.backend.schema.txn_tables import TXNS
from hms_bridge.backend.work import Work
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.model.ids import TxnId

REMEMBERED_MS = 100
"""How long who opens a transaction goes by a boundary that was looked up before."""


def young_since_ms(now: ColumnElement[int]) -> ScalarSelect[Any]:
    """As old as an opener may be, for a statement with a parameter ``open_timeout_ms``."""
    # A statement within: else the time, which is a decimal fraction, is reckoned for each row.
    timeout_ms = bindparam("open_timeout_ms", type_=BigInteger)
    return select(cast(now, BigInteger) - timeout_ms).scalar_subquery()


def boundary(now: ColumnElement[int]) -> ScalarSelect[Any]:
    """For a statement with a parameter ``open_timeout_ms``; null before the first.

    It goes through all young transactions, thousands on a busy server.
    """
    t = TXNS.c
    # Not max(): the index on TXN_ID is read backwards and left at the first old row.
    return (
        select(t.TXN_ID)
        .where(t.TXN_STARTED < young_since_ms(now))
        .order_by(t.TXN_ID.desc())
        .limit(1)
        .scalar_subquery()
    )


def low_boundary(work: Work) -> TxnId:
    """No id up to this one can appear any more."""
    row = _BOUNDARY.first(work, open_timeout_ms=work.settings.txn.open_timeout_ms)
    return TxnId(row[0] or 0 if row else 0)


def _statement(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Select[Any]:
    return select(boundary(now))


_BOUNDARY = TimedSql(_statement)


@dataclass(frozen=True, slots=True)
class _Remembered:
    txn_id: TxnId
    clock: Clock
    until_ms: int


_REMEMBERED: WeakKeyDictionary[Engine, _Remembered] = WeakKeyDictionary()


def remembered(work: Work) -> TxnId | None:
    """A boundary of a moment ago, which holds for ever, as boundaries only grow; None without."""
    known = _REMEMBERED.get(work.connection.engine)
    if known is None or known.clock is not work.clock or steady_ms(work.clock) >= known.until_ms:
        return None
    return known.txn_id


def remember(work: Work, txn_id: TxnId) -> None:
    """No id up to this one can appear any more, as was just looked up."""
    until_ms = steady_ms(work.clock) + REMEMBERED_MS
    _REMEMBERED[work.connection.engine] = _Remembered(txn_id, work.clock, until_ms)
