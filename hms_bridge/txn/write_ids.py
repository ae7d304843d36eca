"""Write ids: one number for each write of a table (Hive: AllocateTableWriteIdsFunction;
docs/hive/transactions.md §7).

NEXT_WRITE_ID's row lock makes them ascend in the order of allocation. A first allocation has no
row to lock; if two race, the unique index stops one, and its whole transaction is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    delete,
    func,
    insert,
    null,
    select,
    union_all,
    update,
)

from hms_bridge.backend.batches import batches, is_among_few
from hms_bridge.backend.dialect import advance_generated_txn_id
from hms_bridge.backend.fixed_sql import FixedInsert, FixedSql, KeyedSql
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    HMSB_LATE_WRITER,
    NEXT_WRITE_ID,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_bridge.backend.sequences import Counter
from hms_bridge.backend.txn_lock import lock_txns
from hms_bridge.errors import MetaError
from hms_bridge.model.ids import MAX_ID, SEED_MAX, CompactionId, TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import AllocateWriteIdsRequest, TxnState, TxnToWriteId
from hms_bridge.txn.asked_write_ids import (
    HELD,
    HERE,
    LOCK_WRITERS,
    AskedWriteIds,
)
from hms_bridge.txn.components import give_write_ids
from hms_bridge.txn.names import require_fitting
from hms_bridge.txn.replication import mapped_pairs
from hms_bridge.txn.txn_state import high_watermark

_N = NEXT_WRITE_ID.c
_W = TXN_TO_WRITE_ID.c


def _written_by(is_of_txn: ColumnElement[bool]) -> Select[Any]:
    by_table = (_W.T2W_DATABASE, _W.T2W_TABLE)
    return select(_W.T2W_TXNID, *by_table, _W.T2W_WRITEID).where(is_of_txn).order_by(*by_table)


_WRITTEN = KeyedSql(_W.T2W_TXNID, _written_by, _written_by(is_among_few(_W.T2W_TXNID, "keys")))
_PUT = FixedInsert(TXN_TO_WRITE_ID)
_FOLLOWING = select(_N.NWI_NEXT).where(
    _N.NWI_DATABASE == HERE["database"], _N.NWI_TABLE == HERE["table"]
)
_NEXT, _LOCK_NEXT = FixedSql(_FOLLOWING), FixedSql(_FOLLOWING.with_for_update())


_COUNTER = Counter(NEXT_WRITE_ID, _N.NWI_NEXT, database=_N.NWI_DATABASE, table=_N.NWI_TABLE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Writers:
    """The highest write id of a table, which transactions with one are open, and how far its
    compactions are: while all stay, nobody commits anything to it."""

    highest: WriteId
    open: frozenset[TxnId]
    compactions: frozenset[tuple[CompactionId, str | None, TxnId | None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """The write ids of the transactions asked for; log ALLOC_WRITE_ID for ``new`` if any."""

    pairs: tuple[TxnToWriteId, ...] = ()
    new: tuple[TxnToWriteId, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenTable:
    """A write id that a transaction has taken."""

    database_name: str
    table_name: str
    write_id: WriteId


def ask_write_ids(connection: Connection, request: AllocateWriteIdsRequest) -> AskedWriteIds | None:
    """A head start for :func:`allocate_table_write_ids`; None where it has to look first."""
    txn_ids = sorted(set(request.txn_ids))
    if request.repl_policy is not None or request.is_reallocation or not txn_ids:
        return None
    database, table = request.database_name.lower(), request.table_name.lower()
    require_fitting(Target(database, table))
    return AskedWriteIds(connection, txn_ids, database, table)


def allocate_table_write_ids(
    connection: Connection,
    request: AllocateWriteIdsRequest,
    asked: AskedWriteIds | None = None,
) -> Allocation:
    """Give each transaction a write id of the table; the one it has, if it has one.

    A reallocation takes back those first. Replayed ones get the source's ids; nothing if one of
    the source's transactions is not open here (any more). Raises MetaError for transactions that
    are not open or read only, for none, for the source's ids with gaps, and for names that do not
    fit.
    """
    database, table = request.database_name.lower(), request.table_name.lower()
    require_fitting(Target(database, table))
    if request.repl_policy is not None:
        return _allocate_replayed(connection, request, database, table)
    txn_ids = sorted(set(request.txn_ids))
    if not txn_ids:
        raise MetaError(f"write ids of {database}.{table} asked for no transaction; send txnIds")
    if asked is None:
        _require_writers(connection, txn_ids, f"{database}.{table}")
        if request.is_reallocation:
            _take_back(connection, txn_ids, database, table)
        held = _held(connection, txn_ids, database, table)
    else:
        if asked.given:
            return Allocation(pairs=asked.given, new=asked.given)
        _refuse_others(txn_ids, asked.writers, f"{database}.{table}")
        held = asked.held
    missing = [txn_id for txn_id in txn_ids if txn_id not in held]
    new = _allocate(connection, missing, database, table)
    pairs = sorted([*held.items(), *((pair.txn_id, pair.write_id) for pair in new)])
    return Allocation(
        pairs=tuple(TxnToWriteId(txn_id=txn, write_id=write) for txn, write in pairs), new=new
    )


def get_max_allocated_write_id(
    connection: Connection, database: str, table: str, *, is_locked: bool = False
) -> WriteId:
    """The highest write id of a table; 0 if there is none. Locked: none is given until the
    transaction ends."""
    following = _next(connection, database, table, is_locked=is_locked)
    return WriteId(max(0, (following or 1) - 1))


def has_write_ids(connection: Connection, database: str, table: str) -> bool:
    """Whether write ids of the table are counted, even if none was given yet."""
    return _next(connection, database, table) is not None


def seed_write_id(connection: Connection, database: str, table: str, seed: WriteId) -> None:
    """The next write id becomes ``seed + 1``. Raises MetaError if the table has write ids, and for
    a seed or names that cannot be.

    Hive does it when it converts a table that has rows (docs/hive/acid.md §24).
    """
    database, table = database.lower(), table.lower()
    require_fitting(Target(database, table))
    if not 0 <= seed <= SEED_MAX:
        raise MetaError(
            f"cannot seed write ids of {database}.{table} with {seed}; give 0 to {SEED_MAX}"
        )
    following = _next(connection, database, table)
    if following is not None:
        raise MetaError(
            f"cannot seed write ids of {database}.{table} with {seed}: it has ids up to "
            f"{following - 1} already; only a table without write ids can be seeded"
        )
    start_counter(connection, database, table, seed + 1)


def seed_txn_id(connection: Connection, seed: TxnId) -> None:
    """The next transaction id becomes ``seed``, as in Hive. Raises MetaError if it is passed, or
    too high.

    An old, committed transaction is put before it: so the ids that are left out never count as
    open, and a second, lower seed is refused (Hive goes back).
    """
    if seed > SEED_MAX:
        raise MetaError(f"cannot go on with transaction {seed}; the highest seed is {SEED_MAX}")
    lock_txns(connection, is_exclusive=True)
    highest = high_watermark(connection)
    if highest >= seed:
        raise _passed(seed)
    if highest < seed - 1:
        connection.execute(
            insert(TXNS).values(
                TXN_ID=seed - 1,
                TXN_STATE=TxnState.COMMITTED.value,
                TXN_STARTED=0,
                TXN_LAST_HEARTBEAT=0,
                TXN_USER="",
                TXN_HOST="",
            )
        )
    if not advance_generated_txn_id(connection, seed):
        raise _passed(seed)


def tables_written_by(connection: Connection, txn_id: TxnId) -> tuple[WrittenTable, ...]:
    """The write ids that one transaction has taken; sorted by table."""
    return written_tables(connection, [txn_id]).get(txn_id, ())


def written_tables(
    connection: Connection, txn_ids: Sequence[TxnId]
) -> Mapping[TxnId, tuple[WrittenTable, ...]]:
    """The write ids that transactions have taken, by transaction; sorted by table."""
    return WrittenTables(connection, txn_ids).by_txn


class WrittenTables:
    """As :func:`written_tables`, once somebody looks (see ``later``)."""

    def __init__(self, connection: Connection, txn_ids: Sequence[TxnId]) -> None:
        self._answer = _WRITTEN.later(connection, txn_ids)

    @property
    def by_txn(self) -> Mapping[TxnId, tuple[WrittenTable, ...]]:
        """Sorted by table."""
        by_txn: dict[TxnId, list[WrittenTable]] = {}
        for txn_id, database, table, write_id in self._answer.rows:
            written = WrittenTable(
                database_name=database, table_name=table, write_id=WriteId(write_id)
            )
            by_txn.setdefault(TxnId(txn_id), []).append(written)
        return {txn_id: tuple(written) for txn_id, written in by_txn.items()}


def is_open(connection: Connection, database: str, table: str, write_id: WriteId) -> bool:
    """Whether an open transaction has this write id of a table."""
    rows = connection.execute(
        select(TXNS.c.TXN_ID)
        .join(TXN_TO_WRITE_ID, TXNS.c.TXN_ID == _W.T2W_TXNID)
        .where(
            of_table(database, table),
            _W.T2W_WRITEID == write_id,
            TXNS.c.TXN_STATE == TxnState.OPEN.value,
        )
    )
    return rows.first() is not None


def writers_of(connection: Connection, database: str, table: str) -> Writers:
    """Who can write to a table, and who could so far."""
    is_writer = and_(of_table(database, table), TXNS.c.TXN_STATE == TxnState.OPEN.value)
    owner = TXN_TO_WRITE_ID.join(TXNS, TXNS.c.TXN_ID == _W.T2W_TXNID)
    opened = connection.scalars(select(_W.T2W_TXNID).select_from(owner).where(is_writer))
    q, h = COMPACTION_QUEUE.c, COMPLETED_COMPACTIONS.c
    queued = select(q.CQ_ID, q.CQ_STATE, q.CQ_NEXT_TXN_ID)
    ended = select(h.CC_ID, null(), null())
    compactions = connection.execute(
        union_all(
            queued.where(q.CQ_DATABASE == database, q.CQ_TABLE == table),
            ended.where(h.CC_DATABASE == database, h.CC_TABLE == table),
        )
    )
    return Writers(
        highest=get_max_allocated_write_id(connection, database, table),
        open=frozenset(opened),
        compactions=frozenset(tuple(row) for row in compactions),
    )


def of_table(database: str, table: str) -> ColumnElement[bool]:
    """TXN_TO_WRITE_ID rows of one table."""
    return and_(_W.T2W_DATABASE == database, _W.T2W_TABLE == table)


def put_write_ids(
    connection: Connection, database: str, table: str, pairs: Sequence[TxnToWriteId]
) -> None:
    """Write down who got which id; the caller holds the counter."""
    rows = [
        {
            "T2W_TXNID": pair.txn_id,
            "T2W_DATABASE": database,
            "T2W_TABLE": table,
            "T2W_WRITEID": pair.write_id,
        }
        for pair in pairs
    ]
    _PUT.put(connection, rows)


def start_counter(connection: Connection, database: str, table: str, after: int) -> None:
    """The next write id of a table without any. Raises MetaError if none would follow."""
    if after >= MAX_ID:
        raise MetaError(
            f"write ids of {database}.{table} cannot begin at {after}: none would follow"
        )
    connection.execute(
        insert(NEXT_WRITE_ID).values(NWI_DATABASE=database, NWI_TABLE=table, NWI_NEXT=after)
    )


def _require_writers(connection: Connection, txn_ids: Sequence[TxnId], target: str) -> None:
    """Lock the transactions' rows: one that ends meanwhile would write unseen."""
    writers = frozenset(TxnId(row[0]) for row in LOCK_WRITERS.all(connection, txn_ids))
    _refuse_others(txn_ids, writers, target)


def _refuse_others(txn_ids: Sequence[TxnId], open_ids: frozenset[TxnId], target: str) -> None:
    others = [txn_id for txn_id in txn_ids if txn_id not in open_ids]
    if others:
        named = ", ".join(f"txnid:{txn_id}" for txn_id in others[:10])
        more = f" and {len(others) - 10} more" if len(others) > 10 else ""
        raise MetaError(
            f"no write ids of {target} for {named}{more}: committed, aborted, read only or "
            "unknown; open a transaction that writes"
        )


def _take_back(connection: Connection, txn_ids: Sequence[TxnId], database: str, table: str) -> None:
    for batch in batches(txn_ids):
        connection.execute(
            delete(TXN_TO_WRITE_ID).where(of_table(database, table), _W.T2W_TXNID.in_(batch))
        )


def _held(
    connection: Connection, txn_ids: Sequence[TxnId], database: str, table: str
) -> dict[TxnId, WriteId]:
    pairs = HELD.all(connection, txn_ids, database=database, table=table)
    return {TxnId(txn_id): WriteId(write_id) for txn_id, write_id in pairs}


def _allocate(
    connection: Connection, txn_ids: Sequence[TxnId], database: str, table: str
) -> tuple[TxnToWriteId, ...]:
    """Take ids from the counter and write them down."""
    if not txn_ids:
        return ()
    first = _COUNTER.take(connection, len(txn_ids), database=database, table=table)
    if first is None:
        first = _after_late_writers(connection, database, table)
        start_counter(connection, database, table, first + len(txn_ids))
    return _give(connection, txn_ids, database, table, WriteId(first))


def _after_late_writers(connection: Connection, database: str, table: str) -> int:
    """The first write id of a table: above what writers of one of its name may still bring
    (:mod:`hms_bridge.txn.late_writers`)."""
    late = HMSB_LATE_WRITER.c
    highest = connection.scalar(
        select(func.max(late.LW_WRITE_ID)).where(
            late.LW_DATABASE == database, late.LW_TABLE == table
        )
    )
    return (highest or 0) + 1


def _allocate_from(
    connection: Connection, txn_ids: Sequence[TxnId], database: str, table: str, first: WriteId
) -> tuple[TxnToWriteId, ...]:
    """Take the ids that begin with ``first``, wherever the counter stands; the source's ids win."""
    there = _next(connection, database, table, is_locked=True)
    after = first + len(txn_ids)
    if there is None:
        start_counter(connection, database, table, after)
    else:
        if first < there:
            # These rows are of a history that the table no longer has.
            connection.execute(delete(TXN_TO_WRITE_ID).where(of_table(database, table)))
        here = and_(_N.NWI_DATABASE == database, _N.NWI_TABLE == table)
        connection.execute(update(NEXT_WRITE_ID).where(here).values(NWI_NEXT=after))
    return _give(connection, txn_ids, database, table, first)


def _give(
    connection: Connection, txn_ids: Sequence[TxnId], database: str, table: str, first: WriteId
) -> tuple[TxnToWriteId, ...]:
    pairs = tuple(
        TxnToWriteId(txn_id=txn_id, write_id=WriteId(first + offset))
        for offset, txn_id in enumerate(txn_ids)
    )
    put_write_ids(connection, database, table, pairs)
    give_write_ids(connection, txn_ids, database, table)
    return pairs


def _allocate_replayed(
    connection: Connection, request: AllocateWriteIdsRequest, database: str, table: str
) -> Allocation:
    source = sorted(request.repl_source, key=lambda pair: pair.write_id)
    if not source:
        raise MetaError(
            f"replayed write ids of {database}.{table} without any; send srcTxnToWriteIdList"
        )
    first, last = source[0].write_id, source[-1].write_id
    if last - first + 1 != len(source):
        raise MetaError(
            f"replayed write ids {first} to {last} of {database}.{table} are {len(source)} "
            "numbers with gaps or repeats; send a contiguous list"
        )
    if first < 1 or last > SEED_MAX:
        raise MetaError(
            f"{first} to {last} are no write ids of {database}.{table}; send 1 to {SEED_MAX}"
        )
    mapped = mapped_pairs(connection, request.repl_policy or "", [pair.txn_id for pair in source])
    if len(mapped) != len({pair.txn_id for pair in source}):
        return Allocation()
    txn_ids = [mapped[pair.txn_id] for pair in source]
    _require_writers(connection, sorted(txn_ids), f"{database}.{table}")
    held = _held(connection, txn_ids, database, table)
    # Replayed before: the same answer, and nothing to log.
    if len(held) == len(txn_ids):
        pairs = [TxnToWriteId(txn_id=txn_id, write_id=held[txn_id]) for txn_id in sorted(held)]
        return Allocation(pairs=tuple(pairs))
    # Some of them only: all are given anew, because the source's ids win.
    if held:
        _take_back(connection, list(held), database, table)
    new = _allocate_from(connection, txn_ids, database, table, first)
    return Allocation(pairs=new, new=new)


def _next(
    connection: Connection, database: str, table: str, *, is_locked: bool = False
) -> int | None:
    statement = _LOCK_NEXT if is_locked else _NEXT
    row = statement.first(connection, database=database.lower(), table=table.lower())
    return None if row is None else int(row[0])


def _passed(seed: TxnId) -> MetaError:
    return MetaError(
        f"cannot seed transaction ids with {seed}: ids up to there are given already; "
        "seed with a higher one"
    )
