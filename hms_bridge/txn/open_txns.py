"""Open transactions, and tell which are open (Hive: OpenTxnsFunction, GetOpenTxnsListHandler;
docs/hive/transactions.md §3, §4).

Ids appear out of order: one that is missing below a young row may belong to an opener that has
not committed yet, and counts as open; below an old row it is dead. So no row may be older than its
id: the time stands in the statement that draws the id (TxnStore's openTxns does so, too). And an
opener that took longer than ``open_timeout_ms`` must not go on: see :class:`OpenedTxns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Connection, ScalarSelect, cast, func, insert, or_, select

from hms_bridge.backend.batches import batches
from hms_bridge.backend.dialect import (
    insert_generating_ids,
    lock_txns,
    now_expression,
    row_time_expression,
)
from hms_bridge.backend.schema.txn_tables import MIN_HISTORY_LEVEL, TXNS
from hms_bridge.backend.work import Work
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.config.settings import TxnSettings
from hms_bridge.errors import MetaError, RetryableBackendError
from hms_bridge.model.ids import MAX_ID, TxnId
from hms_bridge.model.txn import (
    OpenTxn,
    OpenTxns,
    OpenTxnsRequest,
    TxnInfo,
    TxnState,
    TxnType,
)
from hms_bridge.txn.readers import reads_elsewhere
from hms_bridge.txn.replication import is_of_load, map_source_txns, mapped_txns

REPLAYED_MAX = 10_000
"""How many replayed transactions one call opens. They cannot be clipped, as others are, and more
would take longer than openers may: others would wait, and the call would end in a refusal."""

_UNKNOWN = "Unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedTxns:
    """What was opened.

    ``is_event_due``: log OPEN_TXN for ``ids``. ``deadline_ms`` (of ``steady_ms``, None for none):
    if the commit of this database transaction is not over by then, others may have counted
    these ids as dead. The caller must then abort them and open new ones.
    """

    ids: tuple[TxnId, ...]
    is_event_due: bool
    deadline_ms: int | None


def open_txns(work: Work, request: OpenTxnsRequest) -> OpenedTxns:
    """Open transactions; ids ascending, not necessarily contiguous.

    Replayed ones (REPL_CREATED) that were opened before keep their ids. More than
    ``open_batch_max`` are clipped. Raises MetaError for a request that makes no sense,
    RetryableBackendError if it took too long.
    """
    connection = work.connection
    settings = work.settings.txn
    count = _count(request, settings)
    lock_txns(connection, is_exclusive=False)
    # From here on: who waits for a lock has no id yet that others could count as dead.
    deadline_ms = steady_ms(work.clock) + settings.open_timeout_ms
    is_replayed = request.type is TxnType.REPL_CREATED
    policy = request.repl_policy or ""
    if is_replayed:
        known = mapped_txns(connection, policy, request.repl_source_txn_ids)
        if known:
            return OpenedTxns(ids=known, is_event_due=False, deadline_ms=None)
    min_open = min_open_txn_watermark(work)
    ids = _insert(work, request, count)
    _remember_history(connection, ids, min_open)
    if is_replayed:
        map_source_txns(connection, policy, request.repl_source_txn_ids, ids)
    if request.type is TxnType.READ_ONLY:
        return OpenedTxns(ids=ids, is_event_due=False, deadline_ms=None)
    if steady_ms(work.clock) >= deadline_ms:
        raise RetryableBackendError(
            f"opening transactions took longer than {settings.open_timeout_ms} ms; try again"
        )
    return OpenedTxns(ids=ids, is_event_due=not is_of_load(request), deadline_ms=deadline_ms)


class OpenTxnLimit:
    """Refuses new transactions while too many are open; counts once a second at most.

    After a refusal it stays closed until fewer than nine tenths of the limit are open.
    """

    _INTERVAL_MS = 1000

    def __init__(self, settings: TxnSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._counted_at_ms: int | None = None
        self._is_full = False

    def check(self, connection: Connection) -> None:
        """Raises MetaError while too many transactions are open."""
        now = steady_ms(self._clock)
        if self._counted_at_ms is None or now - self._counted_at_ms >= self._INTERVAL_MS:
            self._counted_at_ms = now
            limit = self._settings.open_txns_max
            count = connection.execute(
                select(func.count()).where(TXNS.c.TXN_STATE == TxnState.OPEN.value)
            ).scalar_one()
            self._is_full = count >= (max(1, limit * 9 // 10) if self._is_full else limit)
        if self._is_full:
            raise MetaError(
                f"{self._settings.open_txns_max} transactions are open, the most that "
                "hive.max.open.txns allows; commit or abort some, then try again"
            )


def get_open_txns(
    work: Work, excluded_types: frozenset[TxnType] = frozenset({TxnType.READ_ONLY})
) -> OpenTxns:
    """Open and aborted transactions; young gaps count as open. One statement, one snapshot."""
    found = _list_txns(work, ())
    listed = [OpenTxn(id=row.id, state=row.state, type=row.type) for row in found.txns]
    open_ids = [txn.id for txn in listed if txn.state is TxnState.OPEN]
    return OpenTxns(
        high_watermark=found.high_watermark,
        txns=tuple(txn for txn in listed if txn.type not in excluded_types),
        min_open_txn=open_ids[0] if open_ids else None,
    )


def get_open_txns_info(work: Work) -> tuple[TxnInfo, ...]:
    """Open and aborted transactions as SHOW TRANSACTIONS tells them."""
    t = TXNS.c
    details = (
        t.TXN_USER,
        t.TXN_HOST,
        t.TXN_AGENT_INFO,
        t.TXN_META_INFO,
        t.TXN_STARTED,
        t.TXN_LAST_HEARTBEAT,
    )
    found = _list_txns(work, details)
    return tuple(_info(listed) for listed in found.txns)


def min_open_txn_watermark(work: Work, database: str | None = None) -> TxnId:
    """Every transaction below it has ended, and none can appear below it any more.

    With ``database``: every one that may read something of it (:mod:`hms_bridge.txn.readers`).
    """
    open_id = select(func.min(TXNS.c.TXN_ID)).where(TXNS.c.TXN_STATE == TxnState.OPEN.value)
    if database is not None:
        open_id = open_id.where(~reads_elsewhere(database))
    lowest, boundary = work.connection.execute(
        select(open_id.scalar_subquery(), _low_boundary_query(work))
    ).one()
    return TxnId(min(MAX_ID if lowest is None else lowest, (boundary or 0) + 1))


def low_boundary(work: Work) -> TxnId:
    """No id up to this one can appear any more."""
    return TxnId(work.connection.execute(select(_low_boundary_query(work))).scalar() or 0)


@dataclass(frozen=True, slots=True)
class _Listed:
    id: TxnId
    state: TxnState
    type: TxnType = TxnType.DEFAULT
    details: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class _Listing:
    high_watermark: TxnId
    txns: tuple[_Listed, ...]


def _count(request: OpenTxnsRequest, settings: TxnSettings) -> int:
    if request.count <= 0:
        raise MetaError(f"cannot open {request.count} transactions; ask for 1 or more")
    if request.type is not TxnType.REPL_CREATED:
        return min(request.count, settings.open_batch_max)
    if not request.repl_policy:
        raise MetaError("replayed transactions need a replication policy; send replPolicy")
    if len(request.repl_source_txn_ids) != request.count:
        raise MetaError(
            f"{request.count} replayed transactions asked for {len(request.repl_source_txn_ids)} "
            "source ids; send one source id for each"
        )
    if request.count > REPLAYED_MAX:
        raise MetaError(
            f"cannot open {request.count} replayed transactions at once; ask for {REPLAYED_MAX} "
            "or fewer"
        )
    return request.count


def _insert(work: Work, request: OpenTxnsRequest, count: int) -> tuple[TxnId, ...]:
    connection = work.connection
    row = {
        "TXN_STATE": TxnState.OPEN.value,
        "TXN_USER": request.user,
        "TXN_HOST": request.host,
        "TXN_AGENT_INFO": request.agent,
        "TXN_TYPE": int(request.type),
    }
    time = row_time_expression(connection, work.clock)
    times = {"TXN_STARTED": time, "TXN_LAST_HEARTBEAT": time}
    ids = insert_generating_ids(connection, TXNS, TXNS.c.TXN_ID, [row] * count, times)
    return tuple(TxnId(number) for number in ids)


def _remember_history(connection: Connection, ids: Sequence[TxnId], min_open: TxnId) -> None:
    """A transaction must not find write ids purged that were open when it began."""
    for batch in batches(ids):
        connection.execute(
            insert(MIN_HISTORY_LEVEL),
            [
                {"MHL_TXNID": txn_id, "MHL_MIN_OPEN_TXNID": min(min_open, ids[0])}
                for txn_id in batch
            ],
        )


def _low_boundary_query(work: Work) -> ScalarSelect[Any]:
    # Not max(): the index on TXN_ID is read backwards and left at the first old row.
    t = TXNS.c
    oldest_young_ms = (
        now_expression(work.connection, work.clock) - work.settings.txn.open_timeout_ms
    )
    return (
        select(t.TXN_ID)
        .where(t.TXN_STARTED < oldest_young_ms)
        .order_by(t.TXN_ID.desc())
        .limit(1)
        .scalar_subquery()
    )


def _list_txns(work: Work, details: Iterable[Any]) -> _Listing:
    """Rows that are not committed, and all from the last row below the first young one on: what
    lies before cannot have gaps that count."""
    connection = work.connection
    t = TXNS.c
    oldest_young_ms = (
        cast(now_expression(connection, work.clock), BigInteger) - work.settings.txn.open_timeout_ms
    )
    young = TXNS.alias()
    first_young = select(func.min(young.c.TXN_ID)).where(young.c.TXN_STARTED > oldest_young_ms)
    below = TXNS.alias()
    last_old = select(func.max(below.c.TXN_ID)).where(
        below.c.TXN_ID < func.coalesce(first_young.scalar_subquery(), MAX_ID)
    )
    rows = connection.execute(
        select(t.TXN_ID, t.TXN_STATE, t.TXN_TYPE, (t.TXN_STARTED > oldest_young_ms), *details)
        .where(
            or_(
                t.TXN_STATE != TxnState.COMMITTED.value,
                t.TXN_ID >= func.coalesce(last_old.scalar_subquery(), 0),
            )
        )
        .order_by(t.TXN_ID)
    ).all()
    return _Listing(TxnId(rows[-1][0] if rows else 0), tuple(_with_gaps(rows)))


def _with_gaps(rows: Iterable[Any]) -> Iterator[_Listed]:
    low = 0
    for txn_id, state, kind, is_young, *details in rows:
        if is_young:
            for missing in range(low + 1, txn_id):
                yield _Listed(TxnId(missing), TxnState.OPEN)
        low = txn_id
        if state != TxnState.COMMITTED.value:
            yield _Listed(TxnId(txn_id), TxnState(state), TxnType(kind or 0), tuple(details))


def _info(listed: _Listed) -> TxnInfo:
    user, host, agent, meta, started_ms, heartbeat_ms = listed.details or (
        (_UNKNOWN, _UNKNOWN, None, None, 0, 0)
    )
    return TxnInfo(
        id=listed.id,
        state=listed.state,
        type=listed.type,
        user=user,
        host=host,
        agent=agent,
        meta=meta,
        started_ms=started_ms,
        last_heartbeat_ms=heartbeat_ms,
    )
