"""How far each event hook has heard: a row a hook, moved on by the one process that tells it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, delete, exists, or_, select, update

from hms_bridge.backend.dialect import insert_if_missing
from hms_bridge.backend.schema.notification_tables import HMSB_EVENT_HOOK, HMSB_HOOK_HEARD
from hms_bridge.backend.work import Work
from hms_bridge.errors import InvalidOperationError, NoSuchObjectError
from hms_bridge.model.hook import HookEvent, HookLag, HookPosition, after, just_before
from hms_bridge.model.ids import EventId
from hms_bridge.notification import hook_points

HOLD_MS = 15_000
"""How long a process that tells a hook may be silent before another one does."""

_ROW = HMSB_EVENT_HOOK.c
_HEARD = HMSB_HOOK_HEARD.c


def register(connection: Connection, name: str) -> None:
    """A hook that is new hears what comes after the newest. One of a database that knew no points
    goes on after its last event, with the points that come."""
    newest = hook_points.newest(connection)
    row = {"NAME": name, "LAST_EVENT_ID": newest.event_id}
    insert_if_missing(connection, HMSB_EVENT_HOOK, [_ROW.NAME], row)
    heard = {"NAME": name, "LAST_POINT_ID": newest.point_id}
    insert_if_missing(connection, HMSB_HOOK_HEARD, [_HEARD.NAME], heard)


def take(work: Work, name: str, owner: str) -> HookPosition | None:
    """Up to where a hook has heard, for who tells it now; None if another process does."""
    connection, now_ms = work.connection, work.now_ms
    is_free = or_(_ROW.OWNER.is_(None), _ROW.OWNER == owner, ~_is_held(now_ms))
    taken = connection.execute(
        update(HMSB_EVENT_HOOK)
        .where(_ROW.NAME == name, is_free)
        .values(OWNER=owner, HELD_AT_MS=now_ms)
    )
    if taken.rowcount != 1:
        return None
    return _position(connection, name)


def _is_held(now_ms: int) -> ColumnElement[bool]:
    return _ROW.HELD_AT_MS.between(now_ms - HOLD_MS, now_ms + HOLD_MS)


def _position(connection: Connection, name: str) -> HookPosition | None:
    row = connection.execute(
        select(_ROW.LAST_EVENT_ID, _HEARD.LAST_POINT_ID)
        .join(HMSB_HOOK_HEARD, _HEARD.NAME == _ROW.NAME)
        .where(_ROW.NAME == name)
    ).first()
    return None if row is None else HookPosition(EventId(row[0]), row[1])


def advance(work: Work, name: str, owner: str, since: HookPosition, last: HookPosition) -> bool:
    """A hook has heard all from a position of its row up to another one; False, and no change, if
    another process tells it now.

    Who took longer than it holds the hook has lost it, but not what was heard, unless the row has
    another position by now: else two that are slow in turn would begin again for ever.
    """
    is_where_it_was = exists().where(
        _HEARD.NAME == name, _HEARD.LAST_POINT_ID == since.point_id
    ) & (_ROW.LAST_EVENT_ID == since.event_id)
    moved = work.connection.execute(
        update(HMSB_EVENT_HOOK)
        .where(
            _ROW.NAME == name,
            or_(_ROW.OWNER == owner, _ROW.OWNER.is_not(None) & is_where_it_was),
        )
        .values(LAST_EVENT_ID=last.event_id, OWNER=owner, HELD_AT_MS=work.now_ms)
    )
    if moved.rowcount != 1:
        return False
    _note_point(work.connection, name, last.point_id)
    return True


def _note_point(connection: Connection, name: str, point_id: int) -> None:
    connection.execute(
        update(HMSB_HOOK_HEARD).where(_HEARD.NAME == name).values(LAST_POINT_ID=point_id)
    )


def release(connection: Connection, name: str, owner: str) -> None:
    """Another process may tell the hook at once."""
    connection.execute(
        update(HMSB_EVENT_HOOK)
        .where(_ROW.NAME == name, _ROW.OWNER == owner)
        .values(OWNER=None, HELD_AT_MS=None)
    )


def rewind(connection: Connection, name: str, event_id: EventId) -> HookPosition:
    """Tell a hook once more of an event and all that came after; its new position.

    Who tells it now loses it, else the position that he has in mind would be stored over this one.
    Raises NoSuchObjectError for a hook that is not registered, InvalidOperationError for an event
    that it has yet to hear: what is between would never be told.
    """
    heard = _taken_away(connection, name)
    if not 0 < event_id <= heard.event_id:
        raise InvalidOperationError(
            f"hook {name} has heard up to event {heard.event_id}: it can be told again from one "
            f"of 1 to {heard.event_id} on, not from {event_id}"
        )
    before = HookPosition(
        EventId(event_id - 1), hook_points.last_point_before(connection, event_id)
    )
    _put(connection, name, before)
    return before


def next_unheard(connection: Connection, name: str, key: str) -> HookEvent:
    """The event or point that a hook hears next, if that is the one with this key. Raises
    NoSuchObjectError for a hook that is not registered, InvalidOperationError for another key."""
    heard = _position(connection, name)
    if heard is None:
        raise _unknown(name)
    _newest, events = hook_points.following(connection, heard, 1)
    if not events:
        raise InvalidOperationError(f"hook {name} has heard all that there is, up to {heard}")
    (event,) = events
    if event.key != key:
        raise InvalidOperationError(
            f"hook {name} has heard up to {heard}: what it hears next, and can pass over, is "
            f"{event.key} ({event.type}), not {key}"
        )
    return event


def skip(connection: Connection, name: str, key: str) -> HookPosition:
    """A hook never hears what it would hear next; its new position. Whichever process has the hook
    loses it, as by :func:`rewind`. Raises as :func:`next_unheard`."""
    heard = _taken_away(connection, name)
    event = next_unheard(connection, name, key)
    passed = after(just_before(heard, event), event)
    _put(connection, name, passed)
    return passed


def _taken_away(connection: Connection, name: str) -> HookPosition:
    """Where a hook is, which no process has any more. This comes first, so that whoever stores a
    position comes before or after all that follows. Raises NoSuchObjectError."""
    connection.execute(
        update(HMSB_EVENT_HOOK).where(_ROW.NAME == name).values(OWNER=None, HELD_AT_MS=None)
    )
    heard = _position(connection, name)
    if heard is None:
        raise _unknown(name)
    return heard


def _unknown(name: str) -> NoSuchObjectError:
    return NoSuchObjectError(
        f"no hook '{name}' is registered here; hms-bridge hooks list shows those that are"
    )


def _put(connection: Connection, name: str, position: HookPosition) -> None:
    connection.execute(
        update(HMSB_EVENT_HOOK).where(_ROW.NAME == name).values(LAST_EVENT_ID=position.event_id)
    )
    _note_point(connection, name, position.point_id)


def forget(connection: Connection, name: str) -> bool:
    """Nobody waits for a hook any more; whether it was registered."""
    connection.execute(delete(HMSB_HOOK_HEARD).where(_HEARD.NAME == name))
    return connection.execute(delete(HMSB_EVENT_HOOK).where(_ROW.NAME == name)).rowcount == 1


def lags(work: Work) -> tuple[HookLag, ...]:
    """How far every hook is behind, by name."""
    connection, now_ms = work.connection, work.now_ms
    newest = hook_points.newest(connection)
    rows = connection.execute(
        select(HMSB_EVENT_HOOK, _HEARD.LAST_POINT_ID, _is_held(now_ms).label("IS_HELD"))
        .outerjoin(HMSB_HOOK_HEARD, _HEARD.NAME == _ROW.NAME)
        .order_by(_ROW.NAME)
    ).all()
    positions = []
    for row in rows:
        point_id = newest.point_id if row.LAST_POINT_ID is None else row.LAST_POINT_ID
        heard = HookPosition(EventId(row.LAST_EVENT_ID), point_id)
        oldest = hook_points.oldest_after(connection, heard)
        age_ms = 0 if oldest is None else max(0, work.clock.now_ms() - oldest * 1000)
        positions.append(
            HookLag(
                name=row.NAME,
                heard=heard,
                newest=newest,
                oldest_age_ms=age_ms,
                is_told=row.OWNER is not None and bool(row.IS_HELD),
            )
        )
    return tuple(positions)
