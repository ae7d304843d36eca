"""How far each event hook has heard: a row a hook, moved on by the one process that tells it."""

from __future__ import annotations

from sqlalchemy import Connection, or_, select, update

from hms_bridge.backend.dialect import insert_if_missing
from hms_bridge.backend.schema.notification_tables import HMSB_EVENT_HOOK
from hms_bridge.backend.work import Work
from hms_bridge.model.event import NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.notification import event_log

HOLD_MS = 15_000
"""How long a process that tells a hook may be silent before another one does."""

_ROW = HMSB_EVENT_HOOK.c


def register(connection: Connection, name: str) -> None:
    """A hook that is new hears what comes after the newest event."""
    row = {"NAME": name, "LAST_EVENT_ID": event_log.current_event_id(connection)}
    insert_if_missing(connection, HMSB_EVENT_HOOK, [_ROW.NAME], row)


def take(work: Work, name: str, owner: str) -> EventId | None:
    """The last event that a hook has heard, for who tells it now; None if another process does."""
    connection, now_ms = work.connection, work.now_ms
    is_over = ~_ROW.HELD_AT_MS.between(now_ms - HOLD_MS, now_ms + HOLD_MS)
    is_free = or_(_ROW.OWNER.is_(None), _ROW.OWNER == owner, is_over)
    taken = connection.execute(
        update(HMSB_EVENT_HOOK)
        .where(_ROW.NAME == name, is_free)
        .values(OWNER=owner, HELD_AT_MS=now_ms)
    )
    if taken.rowcount != 1:
        return None
    found = connection.scalar(select(_ROW.LAST_EVENT_ID).where(_ROW.NAME == name))
    return None if found is None else EventId(found)


def advance(work: Work, name: str, owner: str, last: EventId) -> bool:
    """A hook has heard an event, and all before it; False, and no change, if another process
    tells it now."""
    moved = work.connection.execute(
        update(HMSB_EVENT_HOOK)
        .where(_ROW.NAME == name, _ROW.OWNER == owner)
        .values(LAST_EVENT_ID=last, HELD_AT_MS=work.now_ms)
    )
    return moved.rowcount == 1


def release(connection: Connection, name: str, owner: str) -> None:
    """Another process may tell the hook at once."""
    connection.execute(
        update(HMSB_EVENT_HOOK)
        .where(_ROW.NAME == name, _ROW.OWNER == owner)
        .values(OWNER=None, HELD_AT_MS=None)
    )


def following(
    connection: Connection, last: EventId, limit: int
) -> tuple[EventId, tuple[NotificationEvent, ...]]:
    """The newest id there is, and the first events after one."""
    newest = event_log.current_event_id(connection)  # first: what it counts is there, or is gone
    request = NotificationRequest(last_event_id=last, max_events=limit)
    return newest, event_log.read(connection, request)
