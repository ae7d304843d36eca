"""HMSB_HOOK_POINT: what hooks are told of besides events, in the same order of commits.

Who writes points holds the row of NOTIFICATION_SEQUENCE, as who logs events does, and until the
commit, too. So no event comes between a point's reading of the newest one and its commit, and a
reader that saw the newest point has seen, or can read, every event before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, func, insert, select

from hms_bridge.backend.columns import Columns
from hms_bridge.backend.schema.notification_tables import (
    HMSB_EVENT_HOOK,
    HMSB_HOOK_POINT,
    NOTIFICATION_LOG,
    NOTIFICATION_SEQUENCE,
)
from hms_bridge.backend.schema.txn_tables import SEQUENCE_TABLE
from hms_bridge.backend.sequences import next_event_ids, next_sequence_values
from hms_bridge.model.event import NotificationEvent, NotificationRequest
from hms_bridge.model.hook import HookEvent, HookPosition, PointDraft, in_order
from hms_bridge.model.ids import EventId
from hms_bridge.notification import event_log
from hms_bridge.notification.message_text import MessageFormat, write_text

_SEQUENCE = "HMSB_HOOK_POINT"
_ROW = HMSB_HOOK_POINT.c
_COLUMNS = Columns(
    HookEvent,
    id="AFTER_EVENT_ID",
    point_id="POINT_ID",
    time_seconds="POINT_TIME",
    type="POINT_TYPE",
    database_name="DB_NAME",
    table_name="TBL_NAME",
    message="MESSAGE",
)
_PURGE_BATCH = 10_000


def append(
    connection: Connection, drafts: Sequence[PointDraft], *, now_seconds: int
) -> tuple[HookEvent, ...]:
    """Number and store points, after the events of the same transaction."""
    if not drafts:
        return ()
    newest = EventId(next_event_ids(connection, 0) - 1)
    first = next_sequence_values(connection, _SEQUENCE, len(drafts))
    points = tuple(
        HookEvent(
            id=newest,
            point_id=first + place,
            time_seconds=now_seconds,
            type=draft.type.value,
            database_name=draft.database_name,
            table_name=draft.table_name,
            message=write_text(draft.message, MessageFormat.JSON),
        )
        for place, draft in enumerate(drafts)
    )
    connection.execute(insert(HMSB_HOOK_POINT), [_COLUMNS.values(point) for point in points])
    return points


def has_hooks(connection: Connection) -> bool:
    """Whether a hook is registered, wherever it is told."""
    return connection.execute(select(HMSB_EVENT_HOOK.c.NAME).limit(1)).first() is not None


def newest(connection: Connection) -> HookPosition:
    """The newest event and the newest point: one statement, so that both are of one moment."""
    last_point = (
        select(SEQUENCE_TABLE.c.NEXT_VAL)
        .where(SEQUENCE_TABLE.c.SEQUENCE_NAME == _SEQUENCE)
        .scalar_subquery()
    )
    row = connection.execute(select(NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID, last_point)).first()
    if row is None:
        return HookPosition(EventId(0), 0)
    return HookPosition(EventId(row[0] - 1), 0 if row[1] is None else row[1] - 1)


def following(
    connection: Connection, last: HookPosition, limit: int
) -> tuple[HookPosition, tuple[HookEvent, ...]]:
    """See HookPositions.following. What comes meanwhile is after the newest, and left for later."""
    until = newest(connection)  # first: what it counts is there, or is gone
    request = NotificationRequest(last_event_id=last.event_id, max_events=limit)
    events = [
        as_hook_event(event)
        for event in event_log.read(connection, request)
        if event.id <= until.event_id
    ]
    points = _read(connection, last.point_id, until.point_id, limit)
    return until, in_order(events, points, limit)


def as_hook_event(event: NotificationEvent) -> HookEvent:
    """An event as hooks are told of it."""
    return HookEvent(
        id=event.id,
        time_seconds=event.time_seconds,
        type=event.type,
        catalog_name=event.catalog_name,
        database_name=event.database_name,
        table_name=event.table_name,
        message=event.message,
        message_format=event.message_format,
    )


def _read(connection: Connection, last: int, until: int, limit: int) -> list[HookEvent]:
    if until <= last:
        return []
    rows = connection.execute(
        select(HMSB_HOOK_POINT)
        .where(_ROW.POINT_ID > last, _ROW.POINT_ID <= until)
        .order_by(_ROW.POINT_ID)
        .limit(limit)
    )
    return [_COLUMNS.read(row) for row in rows]


def oldest_after(connection: Connection, last: HookPosition) -> int | None:
    """When the first that follows a position was committed, in seconds; None if nothing does."""
    log = NOTIFICATION_LOG.c
    first_event = (
        select(log.EVENT_TIME).where(log.EVENT_ID > last.event_id).order_by(log.EVENT_ID).limit(1)
    )
    first_point = (
        select(_ROW.POINT_TIME)
        .where(_ROW.POINT_ID > last.point_id)
        .order_by(_ROW.POINT_ID)
        .limit(1)
    )
    times = [connection.scalar(first_event), connection.scalar(first_point)]
    return min((time for time in times if time is not None), default=None)


def last_point_before(connection: Connection, event_id: EventId) -> int:
    """The last point that is told before an event."""
    first = connection.scalar(
        select(func.min(_ROW.POINT_ID)).where(event_id <= _ROW.AFTER_EVENT_ID)
    )
    return newest(connection).point_id if first is None else int(first) - 1


def purge(
    connection: Connection, before_seconds: int, now_seconds: int, limit: int = _PURGE_BATCH
) -> int:
    """Remove up to ``limit`` of the oldest points from before a time, as of events; how many."""
    young = (before_seconds, now_seconds)
    return event_log.purge_first(connection, _ROW.POINT_ID, _ROW.POINT_TIME, young, limit)
