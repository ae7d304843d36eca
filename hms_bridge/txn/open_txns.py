"""Open transactions, and list which are open (Hive: OpenTxnsFunction, GetOpenTxnsListHandler;
docs/hive/transactions.md §3, §4).

Ids appear out of order: one that is missing below a young row may belong to an opener that has
not committed yet, and counts as open; below an old row it is dead. So no row may be older than its
id: the time stands in the statement that draws the id (TxnStore's openTxns does so, too). And an
opener that took longer than ``open_timeout_ms`` must not go on: see :class:`OpenedTxns`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
)

from changemanager.clock import span_text
from hms_bridge.backend.batches import keys_text
from hms_bridge.backend.dialect import (
    insert_generating_ids,
    is_postgresql,
    is_sqlite,
    row_time_expression,
)
from hms_bridge.backend.fixed_sql import FixedInsert, FixedSql, KeyedSql, TimedSql
from hms_bridge.backend.schema.txn_tables import MIN_HISTORY_LEVEL, REPL_TXN_MAP, TXNS
from hms_bridge.backend.txn_lock import lock_txns
from hms_bridge.backend.work import Work
from hms_bridge.clock import steady_ms
from hms_bridge.config.settings import TxnSettings
from hms_bridge.errors import MetaError, RetryableBackendError
from hms_bridge.model.ids import MAX_ID, TxnId
from hms_bridge.model.txn import (
    OpenTxn,
    OpenTxnRows,
    OpenTxns,
    OpenTxnsRequest,
    TxnInfo,
    TxnState,
    TxnType,
)
from hms_bridge.txn.foresight import KINDS
from hms_bridge.txn.low_boundary import (
    boundary,
    low_boundary,
    remember,
    remembered,
    young_since_ms,
)
from hms_bridge.txn.names import require_texts_fit
from hms_bridge.txn.open_rows import (
    INSERT_ONE,
    INSERT_ROW,
    LOWEST_OPEN,
    OPEN_AT_ONCE,
    OPEN_KNOWN_AT_ONCE,
    expect_rows,
    given_row,
    row_of,
)
from hms_bridge.txn.readers import reads_elsewhere
from hms_bridge.txn.replication import is_of_load, map_source_txns, mapped_txns
from hms_bridge.txn.txn_state import kind_of, state_of

REPLAYED_MAX = 10_000
"""How many replayed transactions one call opens. They cannot be clipped, as others are, and more
would take longer than openers may: others would wait, and the call would end in a refusal."""

_UNKNOWN = "Unknown"
# Looked up once: to ask a table for a column takes as long as to look at its text.
_USER, _HOST, _AGENT = TXNS.c.TXN_USER, TXNS.c.TXN_HOST, TXNS.c.TXN_AGENT_INFO
_POLICY = REPL_TXN_MAP.c.RTM_REPL_POLICY


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
    return ask_to_open(work, request)()


def expect_to_open(work: Work, request: OpenTxnsRequest, first: TxnId) -> OpenedTxns | None:
    """As :func:`open_txns` for plain ones, if the next id is ``first``; else the statement fails,
    when it is done. None, and nothing is asked, where that cannot be said before."""
    count = _count(request, work.settings.txn)
    known = remembered(work)
    if request.type not in KINDS or request.repl_policy is not None or known is None:
        return None
    began_ms = steady_ms(work.clock)
    lock_txns(work.connection, is_exclusive=False)
    expect_rows(work, request, first, count, known)
    ids = tuple(TxnId(first + place) for place in range(count))
    if request.type is TxnType.READ_ONLY:
        return OpenedTxns(ids=ids, is_event_due=False, deadline_ms=None)
    deadline_ms = began_ms + work.settings.txn.open_timeout_ms
    return OpenedTxns(ids=ids, is_event_due=True, deadline_ms=deadline_ms)


def ask_to_open(work: Work, request: OpenTxnsRequest) -> Callable[[], OpenedTxns]:
    """As :func:`open_txns`, for who asks more before he looks at them (see ``later``)."""
    connection = work.connection
    settings = work.settings.txn
    count = _count(request, settings)
    lock_txns(connection, is_exclusive=False)
    # From here on: who waits for a lock has no id yet that others could count as dead.
    began_ms = steady_ms(work.clock)
    policy = request.repl_policy or ""
    if request.type is TxnType.REPL_CREATED:
        known = mapped_txns(connection, policy, request.repl_source_txn_ids)
        if known:
            return partial(OpenedTxns, ids=known, is_event_due=False, deadline_ms=None)
    ids = _insert_all(work, request, count)
    return lambda: _opened(work, request, ids, began_ms)


def _opened(
    work: Work, request: OpenTxnsRequest, inserted: Callable[[], Sequence[TxnId]], began_ms: int
) -> OpenedTxns:
    connection, timeout_ms = work.connection, work.settings.txn.open_timeout_ms
    ids = tuple(inserted())
    deadline_ms = began_ms + timeout_ms
    if is_postgresql(connection) and steady_ms(work.clock) >= deadline_ms:
        # The lock was on its way with the rows, and may be all that was waited for.
        _FORGET_HISTORY.change(connection, ids)
        _FORGET.change(connection, ids)
        deadline_ms = steady_ms(work.clock) + timeout_ms
        ids = tuple(_insert_all(work, request, len(ids))())
    if request.type is TxnType.REPL_CREATED:
        policy = request.repl_policy or ""
        map_source_txns(connection, policy, request.repl_source_txn_ids, ids)
    if request.type is TxnType.READ_ONLY:
        return OpenedTxns(ids=ids, is_event_due=False, deadline_ms=None)
    if steady_ms(work.clock) >= deadline_ms:
        raise RetryableBackendError(
            f"opening transactions took longer than {span_text(timeout_ms)}; try again"
        )
    return OpenedTxns(ids=ids, is_event_due=not is_of_load(request), deadline_ms=deadline_ms)


def get_open_txns(
    work: Work, excluded_types: frozenset[TxnType] = frozenset({TxnType.READ_ONLY})
) -> OpenTxns:
    """Open and aborted transactions; young gaps count as open. One statement, one snapshot."""
    listing = get_open_txn_rows(work, excluded_types)
    return OpenTxns(
        high_watermark=listing.high_watermark,
        txns=tuple(
            OpenTxn(id=TxnId(txn_id), state=state_of(state), type=kind_of(kind))
            for txn_id, state, kind, *_ in listing.rows
        ),
        min_open_txn=listing.min_open_txn,
    )


def get_open_txn_rows(
    work: Work, excluded_types: frozenset[TxnType] = frozenset({TxnType.READ_ONLY})
) -> OpenTxnRows:
    """As :func:`get_open_txns`, as they are stored: there may be ten thousand, and to make records
    of them takes as long as to ask for them."""
    # By their ids, no two of which are alike; the database would take longer for it.
    rows = sorted(_LIST.all(work, open_timeout_ms=work.settings.txn.open_timeout_ms))
    listed = _with_gaps(rows)
    opened = TxnState.OPEN.value
    excluded: set[int | None] = {int(kind) for kind in excluded_types}
    if TxnType.DEFAULT in excluded_types:
        excluded.add(None)
    return OpenTxnRows(
        high_watermark=TxnId(rows[-1][0] if rows else 0),
        rows=[row for row in listed if row[2] not in excluded],
        min_open_txn=next((row[0] for row in listed if row[1] == opened), None),
    )


def get_open_txns_info(work: Work) -> tuple[TxnInfo, ...]:
    """Open and aborted transactions as SHOW TRANSACTIONS lists them."""
    rows = sorted(_LIST_DETAILS.all(work, open_timeout_ms=work.settings.txn.open_timeout_ms))
    return tuple(_info(*row) for row in _with_gaps(rows))


def min_open_txn_watermark(work: Work, database: str | None = None) -> TxnId:
    """Every transaction below it has ended, and none can appear below it any more.

    With ``database``: every one that may read something of it (:mod:`hms_bridge.txn.readers`).
    """
    if database is None:
        return _lowest_open(work)
    last_old = low_boundary(work)
    ((lowest,),) = _LOWEST_HERE.all(work.connection, database=database)
    return TxnId(min(MAX_ID if lowest is None else lowest, last_old + 1))


def _lowest_open(work: Work) -> TxnId:
    timeout_ms = work.settings.txn.open_timeout_ms
    ((lowest, last_old),) = _WATERMARK.all(work, open_timeout_ms=timeout_ms)
    return TxnId(min(MAX_ID if lowest is None else lowest, (last_old or 0) + 1))


def _count(request: OpenTxnsRequest, settings: TxnSettings) -> int:
    require_texts_fit(
        ("user", request.user, _USER),
        ("hostname", request.host, _HOST),
        ("agentInfo", request.agent, _AGENT),
        ("replPolicy", request.repl_policy, _POLICY),
    )
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


def _insert_all(work: Work, request: OpenTxnsRequest, count: int) -> Callable[[], Sequence[TxnId]]:
    """The transactions, each with what it must not find purged."""
    connection = work.connection
    known = remembered(work)
    if is_postgresql(connection):
        given: dict[str, Any] = {"places": keys_text(range(count)), **given_row(request)}
        if known is not None:
            known_answer = OPEN_KNOWN_AT_ONCE.later(work, known=known, **given)
            return lambda: [TxnId(number) for number, _ in sorted(known_answer.rows)]
        timeout_ms = work.settings.txn.open_timeout_ms
        answer = OPEN_AT_ONCE.later(work, open_timeout_ms=timeout_ms, **given)

        def look() -> Sequence[TxnId]:
            rows = sorted(answer.rows)
            remember(work, TxnId(rows[0][1] - 1))
            return [TxnId(number) for number, _ in rows]

        return look
    if known is None:
        min_open = _lowest_open(work)
        remember(work, TxnId(min_open - 1))
    else:
        min_open = TxnId(known + 1)  # see open_rows
    if count == 1 and is_sqlite(connection):
        ids: tuple[TxnId, ...] = (TxnId(INSERT_ROW.new_key(work, **given_row(request))),)
    elif count == 1 and connection.dialect.insert_returning:
        ((number,),) = INSERT_ONE.all(work, **given_row(request))
        ids = (TxnId(number),)
    else:
        time = row_time_expression(connection, work.clock)
        times = {"TXN_STARTED": time, "TXN_LAST_HEARTBEAT": time}
        new_ids = insert_generating_ids(
            connection, TXNS, TXNS.c.TXN_ID, [row_of(request)] * count, times
        )
        ids = tuple(TxnId(number) for number in new_ids)
    _remember_history(connection, ids, min_open)
    return lambda: ids


def _remember_history(connection: Connection, ids: Sequence[TxnId], min_open: TxnId) -> None:
    """A transaction must not find write ids purged that were open when it began."""
    lowest = min(min_open, ids[0])
    rows = [{"MHL_TXNID": txn_id, "MHL_MIN_OPEN_TXNID": lowest} for txn_id in ids]
    _REMEMBER.put(connection, rows)


_LOWEST_HERE = FixedSql(LOWEST_OPEN.where(~reads_elsewhere(bindparam("database"))))
_REMEMBER = FixedInsert(MIN_HISTORY_LEVEL)
_FORGET = KeyedSql(TXNS.c.TXN_ID, delete(TXNS).where)
_FORGET_HISTORY = KeyedSql(MIN_HISTORY_LEVEL.c.MHL_TXNID, delete(MIN_HISTORY_LEVEL).where)


def _watermark(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Select[Any]:
    return select(LOWEST_OPEN.scalar_subquery(), boundary(now))


_WATERMARK = TimedSql(_watermark)


def _listed(
    *details: ColumnElement[Any],
) -> Callable[[ColumnElement[int], ColumnElement[int]], Select[Any]]:
    """Rows that are not committed, and all from the last row below the first young one on: what
    lies before cannot have gaps that count."""

    def make(now: ColumnElement[int], _row_time: ColumnElement[int]) -> Select[Any]:
        t = TXNS.c
        since_ms = young_since_ms(now)
        is_young = case((t.TXN_STARTED > since_ms, 1), else_=0)
        young, below = TXNS.alias(), TXNS.alias()
        first_young = select(func.min(young.c.TXN_ID)).where(young.c.TXN_STARTED > since_ms)
        last_old = select(func.max(below.c.TXN_ID)).where(
            below.c.TXN_ID < func.coalesce(first_young.scalar_subquery(), MAX_ID)
        )
        is_listed = or_(
            *(t.TXN_STATE == state.value for state in TxnState if state is not TxnState.COMMITTED),
            t.TXN_ID >= func.coalesce(last_old.scalar_subquery(), 0),
        )
        statement = select(t.TXN_ID, t.TXN_STATE, t.TXN_TYPE, is_young, *details)
        return statement.where(is_listed)

    return make


_LIST = TimedSql(_listed())
_LIST_DETAILS = TimedSql(
    _listed(
        TXNS.c.TXN_USER,
        TXNS.c.TXN_HOST,
        TXNS.c.TXN_AGENT_INFO,
        TXNS.c.TXN_META_INFO,
        TXNS.c.TXN_STARTED,
        TXNS.c.TXN_LAST_HEARTBEAT,
    )
)


def _with_gaps(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Those that are not committed, and those that have no row yet: id, state, type, and what else
    was asked of rows."""
    opened, committed = TxnState.OPEN.value, TxnState.COMMITTED.value
    listed: list[tuple[Any, ...]] = []
    low = 0
    for row in rows:
        txn_id, state, _, is_young = row[:4]
        if is_young and txn_id != low + 1:
            listed += [(missing, opened, None) for missing in range(low + 1, txn_id)]
        low = txn_id
        if state != committed:
            listed.append(row)
    return listed


def _info(txn_id: int, state: str, kind: int | None, *others: Any) -> TxnInfo:
    _, user, host, agent, meta, started_ms, heartbeat_ms = others or (
        (None, _UNKNOWN, _UNKNOWN, None, None, 0, 0)
    )
    return TxnInfo(
        id=TxnId(txn_id),
        state=state_of(state),
        type=kind_of(kind),
        user=user,
        host=host,
        agent=agent,
        meta=meta,
        started_ms=started_ms,
        last_heartbeat_ms=heartbeat_ms,
    )
