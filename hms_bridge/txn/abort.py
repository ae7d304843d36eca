"""Abort transactions (Hive: AbortTxnsFunction; docs/hive/transactions.md §10).

What they wrote and their write ids stay remembered until the cleaner has removed the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    String,
    Table,
    Update,
    bindparam,
    delete,
    select,
    update,
)

from hms_bridge.backend.batches import batches
from hms_bridge.backend.dialect import is_postgresql, now_expression
from hms_bridge.backend.fixed_sql import FixedSql, TimedSql
from hms_bridge.backend.schema.txn_tables import (
    HIVE_LOCKS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_LEVEL,
    MIN_HISTORY_WRITE_ID,
    TXNS,
)
from hms_bridge.backend.work import Work
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import AbortReason, AbortTxnRequest, TxnState, TxnType
from hms_bridge.txn.components import track_unlocked
from hms_bridge.txn.replication import forget_source_txn, forget_targets, is_of_load, target_txn
from hms_bridge.txn.txn_state import ended_error, kind_of, lock_txn, purged_state
from hms_bridge.txn.write_ids import WrittenTable, written_tables

OPEN_ONLY: Mapping[Table, Column[Any]] = {
    MIN_HISTORY_LEVEL: MIN_HISTORY_LEVEL.c.MHL_TXNID,
    MIN_HISTORY_WRITE_ID: MIN_HISTORY_WRITE_ID.c.MH_TXNID,
    HIVE_LOCKS: HIVE_LOCKS.c.HL_TXNID,
    MATERIALIZATION_REBUILD_LOCKS: MATERIALIZATION_REBUILD_LOCKS.c.MRL_TXN_ID,
}
"""Tables whose rows end with their transaction, and the column that names it."""

_TXN_ID = bindparam("txn_id", type_=BigInteger)
_FORGET: Mapping[Table, FixedSql] = {
    table: FixedSql(delete(table).where(column == _TXN_ID)) for table, column in OPEN_ONLY.items()
}


def forgetting(end: Update) -> Update:
    """A statement that ends one transaction's row and drops what only an open one needs, all at
    once: for PostgreSQL, which alone can."""
    return end.add_cte(
        *(
            delete(table).where(column == _TXN_ID).cte(f"of_{table.name.lower()}")
            for table, column in OPEN_ONLY.items()
        )
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class AbortedTxn:
    """One transaction that was open and is aborted now."""

    id: TxnId
    type: TxnType
    written: tuple[WrittenTable, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AbortOutcome:
    """What an abort did. Log ABORT_TXN for each of ``logged``.

    ``broken_policies``: replication policies whose replayed transaction was aborted from outside
    the replication; their databases must be marked ``repl.incompatible=true``.
    ``is_silent``: no event is due (:func:`is_of_load`).
    """

    aborted: tuple[AbortedTxn, ...] = ()
    broken_policies: tuple[str, ...] = ()
    is_silent: bool = False

    @property
    def logged(self) -> tuple[AbortedTxn, ...]:
        """Those that get an event: not the read-only ones."""
        if self.is_silent:
            return ()
        return tuple(txn for txn in self.aborted if txn.type is not TxnType.READ_ONLY)


def abort_txn(work: Work, request: AbortTxnRequest) -> AbortOutcome:
    """Abort one transaction; nothing if it is aborted, or a replayed one that is not known.

    Raises NoSuchTxnError if it is unknown or committed.
    """
    connection = work.connection
    txn_id = request.txn_id
    is_replayed = request.type is TxnType.REPL_CREATED
    if is_replayed:
        target = target_txn(connection, request.repl_policy or "", request.txn_id)
        if target is None:
            return AbortOutcome()
        txn_id = target
    row = lock_txn(connection, txn_id)
    state = row.state if row else purged_state(connection, txn_id)
    if row is None or state is TxnState.COMMITTED:
        raise ended_error(txn_id, state)
    if state is TxnState.ABORTED:
        return AbortOutcome()
    if is_replayed:  # before it is aborted: it ends as its source's did, which breaks nothing
        forget_source_txn(connection, request.repl_policy or "", request.txn_id)
    outcome = abort_open(work, {txn_id: row.type}, reason=_reason(request))
    return replace(outcome, is_silent=is_of_load(request))


def abort_txns(
    work: Work, ids: Sequence[TxnId], reason: AbortReason = AbortReason.QUERY
) -> AbortOutcome:
    """Abort those that are open; the others are left as they are."""
    t = TXNS.c
    kinds: dict[TxnId, TxnType] = {}
    for batch in batches(sorted(set(ids))):
        rows = work.connection.execute(
            select(t.TXN_ID, t.TXN_TYPE)
            .where(t.TXN_ID.in_(batch), t.TXN_STATE == TxnState.OPEN.value)
            .order_by(t.TXN_ID)
            .with_for_update()
        )
        kinds.update((TxnId(txn_id), kind_of(kind)) for txn_id, kind in rows)
    return abort_open(work, kinds, reason=reason)


def abort_open(work: Work, kinds: dict[TxnId, TxnType], *, reason: AbortReason) -> AbortOutcome:
    """Abort transactions whose rows the caller has locked and found open."""
    connection = work.connection
    ids = tuple(kinds)
    track_unlocked(connection, ids)
    for batch in batches(ids):
        _end_open(work, batch, reason)
    written = written_tables(connection, ids)
    broken = forget_targets(connection, ids)
    aborted = tuple(
        AbortedTxn(id=txn_id, type=kind, written=written.get(txn_id, ()))
        for txn_id, kind in kinds.items()
    )
    return AbortOutcome(aborted=aborted, broken_policies=broken)


def forget_open(connection: Connection, ids: Sequence[TxnId]) -> None:
    """Drop what only an open transaction needs: its locks and its hold on history."""
    for table, column in OPEN_ONLY.items():
        connection.execute(delete(table).where(column.in_(ids)))


def forget_open_one(connection: Connection, txn_id: TxnId, tables: Iterable[Table]) -> None:
    """As :func:`forget_open`, for the most frequent case."""
    for table in tables:
        _FORGET[table].change(connection, txn_id=txn_id)


def _abort_one(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Update:
    return (
        update(TXNS)
        .where(TXNS.c.TXN_ID == _TXN_ID, TXNS.c.TXN_STATE == TxnState.OPEN.value)
        .values(
            TXN_STATE=TxnState.ABORTED.value,
            TXN_META_INFO=bindparam("reason", type_=String),
            TXN_LAST_HEARTBEAT=now,
        )
    )


def _abort_at_once(now: ColumnElement[int], row_time: ColumnElement[int]) -> Update:
    return forgetting(_abort_one(now, row_time))


_ABORT_ONE, _ABORT_AT_ONCE = TimedSql(_abort_one), TimedSql(_abort_at_once)


def _end_open(work: Work, ids: Sequence[TxnId], reason: AbortReason) -> None:
    # From now on its writer has time to learn of it: aborts are forgotten after a retention.
    if len(ids) == 1:
        parameters = {"txn_id": ids[0], "reason": reason.text or None}
        if is_postgresql(work.connection):
            _ABORT_AT_ONCE.change(work, **parameters)
        else:
            _ABORT_ONE.change(work, **parameters)
            forget_open_one(work.connection, ids[0], OPEN_ONLY)
        return
    work.connection.execute(
        update(TXNS)
        .where(TXNS.c.TXN_ID.in_(ids), TXNS.c.TXN_STATE == TxnState.OPEN.value)
        .values(
            TXN_STATE=TxnState.ABORTED.value,
            TXN_META_INFO=reason.text or None,
            TXN_LAST_HEARTBEAT=now_expression(work.connection, work.clock),
        )
    )
    forget_open(work.connection, ids)


def _reason(request: AbortTxnRequest) -> AbortReason:
    if request.reason is AbortReason.NONE and request.type is TxnType.REPL_CREATED:
        return AbortReason.REPL_DEFAULT
    return request.reason
