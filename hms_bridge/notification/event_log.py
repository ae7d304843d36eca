"""NOTIFICATION_LOG: numbers events without gaps, in the order of commits, and reads them.

The row of NOTIFICATION_SEQUENCE is held from the numbering until the commit. So a reader that
asks for what came after the last id it saw never misses one (I8); and so :func:`append` must be
the last thing that a transaction does, because everyone else who logs waits for it (Hive:
DbNotificationListener.addNotificationLog; docs/hive/metastore.md §16).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakSet

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Integer,
    Select,
    and_,
    bindparam,
    column,
    delete,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql

from hms_bridge.backend.columns import Columns
from hms_bridge.backend.dialect import is_postgresql, or_fault
from hms_bridge.backend.fixed_sql import FixedInsert, FixedSql, json_rows
from hms_bridge.backend.listing_sql import ListingSql
from hms_bridge.backend.schema.data_steps import LOG_SEQUENCE
from hms_bridge.backend.schema.notification_tables import (
    NOTIFICATION_LOG,
    NOTIFICATION_SEQUENCE,
    TXN_WRITE_NOTIFICATION_LOG,
)
from hms_bridge.backend.schema.txn_tables import SEQUENCE_TABLE
from hms_bridge.backend.sequences import next_event_numbers
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.event import EventRow, NotificationEvent, NotificationRequest, event_of
from hms_bridge.model.ids import MAX_ID, EventId
from hms_bridge.notification.events import EventDraft
from hms_bridge.notification.message_text import MessageFormat, write_text

PURGE_BATCH = 10_000

_COLUMNS = Columns(
    NotificationEvent,
    time_seconds="EVENT_TIME",
    type="EVENT_TYPE",
    catalog_name="CAT_NAME",
    database_name="DB_NAME",
    table_name="TBL_NAME",
    message="MESSAGE",
    message_format="MESSAGE_FORMAT",
)

_INSERT = FixedInsert(NOTIFICATION_LOG)


def _number_and_insert(
    values: Sequence[ColumnElement[Any]],
    count: ColumnElement[int],
    place: ColumnElement[int],
) -> Select[Any]:
    """Number events and store them, in one statement; nothing if there is no row that
    counts them. The number of the first.

    The second counter comes from the first, so that its row is locked after it: Hive holds
    the first while it takes from the second, on another connection, where no database would see
    that two wait for each other.
    """
    ids, rows = NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID, SEQUENCE_TABLE.c.NEXT_VAL
    event = (
        update(NOTIFICATION_SEQUENCE)
        .where(NOTIFICATION_SEQUENCE.c.NNI_ID >= literal(-1 - MAX_ID, BigInteger))  # by its index
        .values({ids: ids + count})
        .returning((ids - count).label("id"))
        .cte("event")
    )
    name = literal(LOG_SEQUENCE, SEQUENCE_TABLE.c.SEQUENCE_NAME.type)
    # PostgreSQL takes a counter's table for one of thousands of rows. Where it knows of one, it
    # keeps its plan, which takes longer to make than to carry out.
    is_one: ColumnElement[int] = literal_column("1")
    first_row = select(name, literal(1, BigInteger) + count).select_from(event).limit(is_one)
    numbered = (
        postgresql.insert(SEQUENCE_TABLE)
        .from_select(["SEQUENCE_NAME", "NEXT_VAL"], first_row)
        .on_conflict_do_update(
            index_elements=[SEQUENCE_TABLE.c.SEQUENCE_NAME], set_={rows: rows + count}
        )
        .returning((rows - count).label("id"))
        .cte("numbered")
    )
    first_event = select(event.c.id).scalar_subquery()
    logged = (
        insert(NOTIFICATION_LOG)
        .from_select(
            ["NL_ID", "EVENT_ID", *_COLUMNS.names],
            select(numbered.c.id + place, first_event + place, *values),
        )
        .returning(NOTIFICATION_LOG.c.EVENT_ID)
        .cte("logged")
    )
    first = func.min(logged.c.EVENT_ID)
    # Nobody may be waiting for the answer, and the commit stand behind the statement. So where
    # nothing was logged although it was counted on, it fails.
    is_whole = or_(func.count() == count, bindparam("is_counted_on", type_=Integer) == 0)
    checked = or_fault(first, is_whole, "the row of NOTIFICATION_SEQUENCE is gone, restart")
    return select(checked).select_from(logged)


def _one() -> Select[Any]:
    names = {name: NOTIFICATION_LOG.c[name].type for name in _COLUMNS.names}
    given = [bindparam(f"given_{name}", type_=kind) for name, kind in names.items()]
    return _number_and_insert(given, literal(1, BigInteger), literal(0, BigInteger))


def _several() -> Select[Any]:
    """Of rows in a JSON text, which have their places in them."""
    given = json_rows("rows", NOTIFICATION_LOG, _COLUMNS.names, column(_PLACE, BigInteger))
    count = bindparam("count", type_=BigInteger)
    return _number_and_insert([given.c[name] for name in _COLUMNS.names], count, given.c[_PLACE])


_PLACE = "place"
_NUMBER_AND_INSERT, _INSERT_ALL_AT_ONCE = FixedSql(_one()), FixedSql(_several())


@dataclass(slots=True)
class Logged:
    """What was appended. On PostgreSQL it may be on its way until somebody looks, or commits."""

    _drafts: Sequence[NotificationEvent]
    _first: Callable[[], EventId]
    _events: tuple[NotificationEvent, ...] | None = None

    @property
    def events(self) -> tuple[NotificationEvent, ...]:
        """With their numbers."""
        if self._events is None:
            first = self._first()
            self._events = tuple(
                replace(draft, id=EventId(first + place))
                for place, draft in enumerate(self._drafts)
            )
        return self._events


NOTHING = Logged((), lambda: EventId(0))


def append(
    connection: Connection,
    drafts: Sequence[EventDraft],
    *,
    now_seconds: int,
    message_format: MessageFormat,
) -> Logged:
    """Number and store events, in the given order. The last statements of a transaction."""
    if not drafts:
        return NOTHING
    # Written before the lock is taken: zipping is the slow part.
    events = [
        NotificationEvent(
            id=EventId(0),
            time_seconds=now_seconds,
            type=draft.type.value,
            catalog_name=draft.catalog_name,
            database_name=draft.database_name,
            table_name=draft.table_name,
            message=write_text(draft.message, message_format),
            message_format=message_format.value,
        )
        for draft in drafts
    ]
    rows = [_COLUMNS.values(event) for event in events]
    first = _insert_at_once(connection, rows) if is_postgresql(connection) else None
    if first is None:
        number = _insert_all(connection, rows)
        first = partial(EventId, number)
    return Logged(events, first)


_HAVE_COUNTERS: WeakSet[Engine] = WeakSet()
"""Databases whose counters of events have been seen; nobody removes them."""


def _insert_at_once(
    connection: Connection, rows: Sequence[Mapping[str, object]]
) -> Callable[[], EventId] | None:
    """What gives the first id; None, and nothing done, where it takes more than one statement."""
    is_counted_on = connection.engine in _HAVE_COUNTERS
    if len(rows) == 1:
        given = {f"given_{name}": value for name, value in rows[0].items()}
        answer = _NUMBER_AND_INSERT.later(connection, is_counted_on=int(is_counted_on), **given)
    else:
        text = json.dumps([{_PLACE: place, **row} for place, row in enumerate(rows)])
        answer = _INSERT_ALL_AT_ONCE.later(
            connection, is_counted_on=int(is_counted_on), rows=text, count=len(rows)
        )
    if not is_counted_on:
        if answer.rows[0][0] is None:
            return None
        _HAVE_COUNTERS.add(connection.engine)
    return lambda: EventId(answer.rows[0][0])


def _insert_all(connection: Connection, rows: Sequence[Mapping[str, object]]) -> EventId:
    """The first id."""
    first, first_row = next_event_numbers(connection, LOG_SEQUENCE, len(rows))
    numbered = [
        {"NL_ID": first_row + place, "EVENT_ID": first + place, **row}
        for place, row in enumerate(rows)
    ]
    _INSERT.put(connection, numbered)
    return first


def read(connection: Connection, request: NotificationRequest) -> tuple[NotificationEvent, ...]:
    """Events after an id, ascending; ``max_events`` of 0 or less means all."""
    return tuple(map(event_of, read_rows(connection, request)))


_LOG = NOTIFICATION_LOG.c
_MESSAGE = func.coalesce(_LOG.MESSAGE, "")
_FORMAT = func.coalesce(func.nullif(_LOG.MESSAGE_FORMAT, ""), MessageFormat.JSON.value)
"""Hive leaves it out where it was upgraded from a generation that had one only."""
_READ = select(
    _LOG.EVENT_ID,
    _LOG.EVENT_TIME,
    _LOG.EVENT_TYPE,
    _LOG.CAT_NAME,
    _LOG.DB_NAME,
    _LOG.TBL_NAME,
    _MESSAGE,
    _FORMAT,
).order_by(_LOG.EVENT_ID)
"""In the order of an EventRow."""
_AFTER = ListingSql(
    lambda _: _READ.where(_LOG.EVENT_ID > bindparam("last", type_=BigInteger)).limit(
        bindparam("most", type_=BigInteger)
    )
)


def read_rows(connection: Connection, request: NotificationRequest) -> Sequence[EventRow]:
    """As :func:`read`, as they are stored: clients ask for a thousand at a time, and to make
    records of them takes longer than to ask for them."""
    most = request.max_events if request.max_events and request.max_events > 0 else MAX_ID
    filters = _filters(request)
    if filters:
        query = _READ.where(_LOG.EVENT_ID > request.last_event_id, *filters).limit(most)
        rows: Sequence[Any] = connection.execute(query).all()
        return rows
    return _AFTER.all(connection, last=request.last_event_id, most=most)


def _filters(request: NotificationRequest) -> list[ColumnElement[bool]]:
    log = NOTIFICATION_LOG.c
    filters: list[ColumnElement[bool]] = []
    if request.types:
        filters.append(log.EVENT_TYPE.in_(sorted(request.types)))
    if request.skipped_types:
        filters.append(log.EVENT_TYPE.not_in(sorted(request.skipped_types)))
    if request.catalog_name is not None:
        filters.append(log.CAT_NAME == request.catalog_name.lower())
    if request.database_name is not None:
        filters.append(log.DB_NAME == request.database_name.lower())
    if request.table_names:
        filters.append(log.TBL_NAME.in_([name.lower() for name in request.table_names]))
    return filters


def current_event_id(connection: Connection) -> EventId:
    """The newest id; 0 before the first event."""
    following = connection.scalar(select(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID))
    return EventId(0 if following is None else following - 1)


def count(
    connection: Connection,
    from_event_id: EventId,
    database: str,
    catalog: str = DEFAULT_CATALOG,
    *,
    tables: Sequence[str] = (),
) -> int:
    """How many events of one database, or of some of its tables, came after an id."""
    log = NOTIFICATION_LOG.c
    query = select(func.count()).where(
        log.EVENT_ID > from_event_id,
        log.DB_NAME == database.lower(),
        log.CAT_NAME == catalog.lower(),
    )
    if tables:
        query = query.where(log.TBL_NAME.in_([table.lower() for table in tables]))
    return int(connection.scalar(query) or 0)


def first_time_since(connection: Connection, since_seconds: int) -> int | None:
    """When the first event from this time on happened, in seconds; None if there is none."""
    log = NOTIFICATION_LOG.c
    query = select(log.EVENT_TIME).where(log.EVENT_TIME >= since_seconds)
    seconds = connection.scalar(query.order_by(log.EVENT_ID).limit(1))
    return None if seconds is None else int(seconds)


def purge(
    connection: Connection, before_seconds: int, now_seconds: int, limit: int = PURGE_BATCH
) -> int:
    """Remove up to ``limit`` of the oldest events from before a time, and write-log rows as old.

    How many rows went; the caller comes again, in a new transaction, until it is 0. Only the
    first ``limit`` rows of either are looked at, however long the log is: numbers ascend with
    time, and where somebody has set it back, an older row waits until those before it are old, so
    that the log has no hole. A time that is yet to come is none: such a row goes with an old one
    after it.
    """
    log, writes = NOTIFICATION_LOG.c, TXN_WRITE_NOTIFICATION_LOG.c
    young = (before_seconds, now_seconds)
    return purge_first(connection, log.EVENT_ID, log.EVENT_TIME, young, limit) + purge_first(
        connection, writes.WNL_TXNID, writes.WNL_EVENT_TIME, young, limit
    )


def purge_first(
    connection: Connection,
    key: Column[Any],
    time: Column[Any],
    young: tuple[int, int],
    limit: int,
) -> int:
    """Remove old rows that no young one, by the first and the last time of those, stands before;
    how many. Only the first ``limit`` rows are looked at."""
    first = select(key.label("key"), time.label("time")).order_by(key).limit(limit).subquery().c
    kept = connection.scalar(select(func.min(first.key)).where(first.time.between(*young)))
    is_old = first.time < young[0]
    if kept is not None:
        is_old = and_(is_old, first.key < kept)
    last = connection.scalar(select(func.max(first.key)).where(is_old))
    if last is None:
        return 0
    return connection.execute(delete(key.table).where(key <= last)).rowcount
