"""NOTIFICATION_LOG: numbers events without gaps, in the order of commits, and reads them.

The row of NOTIFICATION_SEQUENCE is held from the numbering until the commit. So a reader that
asks for what came after the last id it saw never misses one (I8); and so :func:`append` must be
the last thing that a transaction does, because everyone else who logs waits for it (Hive:
DbNotificationListener.addNotificationLog; docs/hive/metastore.md §16).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from hms_bridge.backend.schema.notification_tables import (
    NOTIFICATION_LOG,
    NOTIFICATION_SEQUENCE,
    TXN_WRITE_NOTIFICATION_LOG,
)
from hms_bridge.backend.sequences import next_event_ids, next_sequence_values
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.event import NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.notification.events import EventDraft
from hms_bridge.notification.message_text import MessageFormat, write_text

LOG_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MNotificationLog"
PURGE_BATCH = 10_000


def append(
    connection: Connection,
    drafts: Sequence[EventDraft],
    *,
    now_seconds: int,
    message_format: MessageFormat,
) -> tuple[NotificationEvent, ...]:
    """Number and store events, in the given order. The last statements of a transaction."""
    if not drafts:
        return ()
    # Written before the lock is taken: zipping is the slow part.
    texts = [write_text(draft.message, message_format) for draft in drafts]
    first = next_event_ids(connection, len(drafts))
    events = tuple(
        NotificationEvent(
            id=EventId(first + place),
            time_seconds=now_seconds,
            type=draft.type.value,
            catalog_name=draft.catalog_name,
            database_name=draft.database_name,
            table_name=draft.table_name,
            message=text,
            message_format=message_format.value,
        )
        for place, (draft, text) in enumerate(zip(drafts, texts, strict=True))
    )
    first_row = next_sequence_values(connection, LOG_SEQUENCE, len(events))
    connection.execute(
        insert(NOTIFICATION_LOG),
        [
            {
                "NL_ID": first_row + place,
                "EVENT_ID": event.id,
                "EVENT_TIME": event.time_seconds,
                "EVENT_TYPE": event.type,
                "CAT_NAME": event.catalog_name,
                "DB_NAME": event.database_name,
                "TBL_NAME": event.table_name,
                "MESSAGE": event.message,
                "MESSAGE_FORMAT": event.message_format,
            }
            for place, event in enumerate(events)
        ],
    )
    return events


def read(connection: Connection, request: NotificationRequest) -> tuple[NotificationEvent, ...]:
    """Events after an id, ascending; ``max_events`` of 0 or less means all."""
    log = NOTIFICATION_LOG.c
    query = select(NOTIFICATION_LOG).where(log.EVENT_ID > request.last_event_id)
    filters: list[ColumnElement[bool]] = []
    if request.types:
        filters.append(log.EVENT_TYPE.in_(sorted(request.types)))
    if request.skipped_types:
        filters.append(log.EVENT_TYPE.not_in(sorted(request.skipped_types)))
    if request.catalog_name is not None:
        filters.append(log.CAT_NAME == request.catalog_name)
    if request.database_name is not None:
        filters.append(log.DB_NAME == request.database_name.lower())
    if request.table_names:
        filters.append(log.TBL_NAME.in_([name.lower() for name in request.table_names]))
    query = query.where(*filters).order_by(log.EVENT_ID)
    if request.max_events is not None and request.max_events > 0:
        query = query.limit(request.max_events)
    return tuple(
        NotificationEvent(
            id=EventId(row.EVENT_ID),
            time_seconds=row.EVENT_TIME,
            type=row.EVENT_TYPE,
            catalog_name=row.CAT_NAME,
            database_name=row.DB_NAME,
            table_name=row.TBL_NAME,
            message=row.MESSAGE or "",
            message_format=row.MESSAGE_FORMAT or MessageFormat.JSON.value,
        )
        for row in connection.execute(query)
    )


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


def purge(connection: Connection, before_seconds: int, limit: int = PURGE_BATCH) -> int:
    """Remove up to ``limit`` of the oldest events from before a time, and write-log rows as old.

    How many rows went; the caller comes again, in a new transaction, until it is 0.
    """
    log, writes = NOTIFICATION_LOG.c, TXN_WRITE_NOTIFICATION_LOG.c
    oldest = (
        select(log.EVENT_ID)
        .where(log.EVENT_TIME < before_seconds)
        .order_by(log.EVENT_ID)
        .limit(limit)
        .subquery()
    )
    last = connection.scalar(select(func.max(oldest.c.EVENT_ID)))
    gone = 0
    if last is not None:
        gone += connection.execute(
            delete(NOTIFICATION_LOG).where(log.EVENT_ID <= last, log.EVENT_TIME < before_seconds)
        ).rowcount
    gone += connection.execute(
        delete(TXN_WRITE_NOTIFICATION_LOG).where(writes.WNL_EVENT_TIME < before_seconds)
    ).rowcount
    return gone
