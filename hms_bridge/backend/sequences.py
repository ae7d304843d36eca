"""Numbers that all servers on one database share; each is taken under a row lock.

The lock is held until the transaction ends. So take a number last, and in this order: lock id,
compaction id, event id, SEQUENCE_TABLE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnClause,
    ColumnElement,
    Connection,
    TableClause,
    and_,
    bindparam,
    column,
    func,
    insert,
    select,
    table,
    true,
    update,
)
from sqlalchemy.sql.dml import ReturningUpdate

from hms_bridge.backend.dialect import is_mysql, is_sqlite
from hms_bridge.backend.fixed_sql import FixedSql, TimedSql
from hms_bridge.backend.schema.txn_tables import (
    NEXT_COMPACTION_QUEUE_ID,
    NEXT_LOCK_ID,
    SEQUENCE_TABLE,
)
from hms_bridge.backend.work import Work
from hms_bridge.errors import BackendError
from hms_bridge.model.ids import CompactionId, EventId, LockId

_NOTIFICATION_SEQUENCE = table(
    "NOTIFICATION_SEQUENCE", column("NNI_ID", BigInteger), column("NEXT_EVENT_ID", BigInteger)
)


class Counter:
    """A column that holds the next number. ``keys`` find its row, by the names of the values that
    are given for them."""

    def __init__(
        self, counter: TableClause, numbers: ColumnClause[Any], **keys: ColumnClause[Any]
    ) -> None:
        here = and_(true(), *(key == bindparam(name) for name, key in keys.items()))
        after = numbers + bindparam("count", type_=BigInteger)
        change = update(counter).where(here).values({numbers: after})
        self._change = FixedSql(change)
        self._take = FixedSql(change.returning(numbers))
        # MySQL returns nothing of a change but this.
        self._take_after = FixedSql(change.values({numbers: func.last_insert_id(after)}))

    def take(self, connection: Connection, count: int, **keys: str) -> int | None:
        """Add ``count`` under the row's lock; the number before, None if there is no row."""
        if is_mysql(connection):
            after = self._take_after.last_number(connection, count=count, **keys)
            return None if after is None else after - count
        row = self._take.first(connection, count=count, **keys)
        return None if row is None else int(row[0]) - count

    def move(self, connection: Connection, count: int, **keys: str) -> None:
        """Add ``count`` to a row that is there, and held."""
        self._change.later(connection, count=count, **keys)


_LOCKS = Counter(NEXT_LOCK_ID, NEXT_LOCK_ID.c.NL_NEXT)
_COMPACTIONS = Counter(NEXT_COMPACTION_QUEUE_ID, NEXT_COMPACTION_QUEUE_ID.c.NCQ_NEXT)
_EVENTS = Counter(_NOTIFICATION_SEQUENCE, _NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID)
_SEQUENCES = Counter(
    SEQUENCE_TABLE, SEQUENCE_TABLE.c.NEXT_VAL, sequence=SEQUENCE_TABLE.c.SEQUENCE_NAME
)


_LOOK_AT_BOTH = FixedSql(
    select(
        select(_NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID).scalar_subquery(),
        select(SEQUENCE_TABLE.c.NEXT_VAL)
        .where(SEQUENCE_TABLE.c.SEQUENCE_NAME == bindparam("sequence"))
        .scalar_subquery(),
    )
)


def _take_timed(now: ColumnElement[int], _row_time: ColumnElement[int]) -> ReturningUpdate[Any]:
    following = NEXT_LOCK_ID.c.NL_NEXT
    after = following + bindparam("count", type_=BigInteger)
    return update(NEXT_LOCK_ID).values({following: after}).returning(following, now)


_TAKE_TIMED = TimedSql(_take_timed)


def ask_lock_ids(work: Work, count: int = 1) -> Callable[[], tuple[LockId, int]]:
    """Take lock ids; what gives the first, and with it the time of the database, in milliseconds,
    once somebody looks (see ``later``)."""
    if not is_mysql(work.connection):
        answer = _TAKE_TIMED.later(work, count=count)

        def look() -> tuple[LockId, int]:
            if not answer.rows:
                raise _empty("NEXT_LOCK_ID")
            after, now_ms = answer.rows[0]
            return LockId(after - count), int(now_ms)

        return look
    now_ms = work.now_ms
    first = _LOCKS.take(work.connection, count)
    if first is None:
        raise _empty("NEXT_LOCK_ID")
    taken = LockId(first), now_ms
    return lambda: taken


def next_compaction_id(connection: Connection) -> CompactionId:
    """Take one id of the compaction queue."""
    first = _COMPACTIONS.take(connection, 1)
    if first is None:
        raise _empty("NEXT_COMPACTION_QUEUE_ID")
    return CompactionId(first)


def next_event_ids(connection: Connection, count: int) -> EventId:
    """Take ``count`` event ids; the first. Everyone who logs waits until this transaction ends."""
    first = _EVENTS.take(connection, count)
    if first is None:
        connection.execute(insert(_NOTIFICATION_SEQUENCE).values(NNI_ID=1, NEXT_EVENT_ID=1 + count))
        return EventId(1)
    return EventId(first)


def next_event_numbers(connection: Connection, rows: str, count: int) -> tuple[EventId, int]:
    """Take event ids, and as many values of the sequence ``rows``; the first of each."""
    if is_sqlite(connection):
        # What writes there is alone: so to look at both, and then to move them, is the same, and
        # takes half as long as to have returned what was changed.
        ((event, row),) = _LOOK_AT_BOTH.all(connection, sequence=rows)
        if event is not None and row is not None:
            _EVENTS.move(connection, count)
            _SEQUENCES.move(connection, count, sequence=rows)
            return EventId(event), row
    return next_event_ids(connection, count), next_sequence_values(connection, rows, count)


def next_sequence_values(connection: Connection, name: str, count: int, *, after: int = 0) -> int:
    """Take ``count`` values of a DataNucleus sequence (``org.apache.…MTable``); the first. Nobody
    has taken any yet: those that follow ``after``.

    A Hive metastore on the same database takes its values in blocks from the same row
    (docs/hive/metastore.md §15).
    """
    first = _SEQUENCES.take(connection, count, sequence=name)
    if first is None:
        connection.execute(
            insert(SEQUENCE_TABLE).values(SEQUENCE_NAME=name, NEXT_VAL=after + 1 + count)
        )
        return after + 1
    return first


def _empty(name: str) -> BackendError:
    return BackendError(
        f"table {name} has no row; the schema was not installed completely: "
        "run 'hms-bridge schema init'"
    )
