"""What hooks are asked and told, and the order of it. Pure.

Most of what happens is a row of NOTIFICATION_LOG. What Hive's log has no event for is a *point*: a
row of HMSB_HOOK_POINT, written only where somebody hears it. Both are put into one order, that of
commits: a point carries the id of the newest event at its commit and stands between that event and
the next one.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import EventId


class PointType(StrEnum):
    """What hooks alone are told of; the text is stored in HMSB_HOOK_POINT.POINT_TYPE."""

    ACID_WRITE = "ACID_WRITE"
    START_COMPACTION = "START_COMPACTION"
    STOP_COMPACTION = "STOP_COMPACTION"
    CLEAN_COMPACTION = "CLEAN_COMPACTION"
    ARCHIVE_FILE = "ARCHIVE_FILE"
    PURGE_FILE = "PURGE_FILE"
    RESTORE_FILE = "RESTORE_FILE"
    END_DUMP = "END_DUMP"
    END_LOAD = "END_LOAD"
    END_CYCLE = "END_CYCLE"
    LATE_POLICY = "LATE_POLICY"
    CHANGE_CATALOG = "CHANGE_CATALOG"
    CHANGE_CONNECTOR = "CHANGE_CONNECTOR"
    CHANGE_FUNCTION = "CHANGE_FUNCTION"
    CHANGE_VIEW = "CHANGE_VIEW"
    CHANGE_MARK = "CHANGE_MARK"
    CHANGE_ROLE = "CHANGE_ROLE"
    CHANGE_PRIVILEGES = "CHANGE_PRIVILEGES"
    CHANGE_RESOURCE_PLAN = "CHANGE_RESOURCE_PLAN"
    CHANGE_SCHEDULED_QUERY = "CHANGE_SCHEDULED_QUERY"
    CHANGE_PROCEDURE = "CHANGE_PROCEDURE"
    CHANGE_TOKEN = "CHANGE_TOKEN"
    TEST = "TEST"

    @property
    def is_change(self) -> bool:
        """Whether a client wants to change the catalog, so that hooks are asked before."""
        return self.value.startswith("CHANGE_")


NEVER_ASKED = frozenset(
    {
        EventType.ABORT_TXN.value,
        EventType.COMMIT_COMPACTION.value,
        EventType.FAIL_COMPACTION.value,
    }
)
"""Ends of what has begun: whoever could refuse them would keep locks and leases for ever."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What is about to be committed. ``message``: as the event will tell it, names as Hive's."""

    type: str
    catalog_name: str | None
    database_name: str | None
    table_name: str | None
    message: Mapping[str, Any]

    @property
    def described(self) -> str:
        """``DROP_TABLE sales.orders``, ``CHANGE_ROLE create analysts``."""
        names = ".".join(name for name in (self.database_name, self.table_name) if name)
        if "verb" in self.message:
            names = f"{self.message['verb']} {self.message['name']}"
        return f"{self.type} {names}".rstrip()


@dataclass(frozen=True, kw_only=True, slots=True)
class PointDraft:
    """A point that is not numbered yet."""

    type: PointType
    message: Mapping[str, Any]
    database_name: str | None = None
    table_name: str | None = None


class HookPosition(NamedTuple):
    """The last event and the last point that a hook has heard."""

    event_id: EventId
    point_id: int

    @property
    def total(self) -> int:
        """How much there was until here; neither ids of events nor of points have gaps."""
        return self.event_id + self.point_id

    def __str__(self) -> str:
        return f"{self.event_id}.{self.point_id}" if self.point_id else str(self.event_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class HookEvent(NotificationEvent):
    """An event, or a point with the ``id`` of the event before it; ``point_id`` of an event is 0.

    ``key`` is the same whenever it is told again, and no other has it.
    """

    point_id: int = 0

    @property
    def key(self) -> str:
        """``17``, or ``17.4`` for the fourth point, which came after event 17."""
        return f"{self.id}.{self.point_id}" if self.point_id else str(self.id)


def in_order(
    events: Sequence[HookEvent], points: Sequence[HookEvent], limit: int
) -> tuple[HookEvent, ...]:
    """The first of both in the order of their commits, if each is the beginning of what there is
    and is as long as ``limit`` unless it is all."""
    return tuple(islice(heapq.merge(events, points, key=_place), limit))


def _place(event: HookEvent) -> tuple[int, int]:
    return event.id, event.point_id


def just_before(last: HookPosition, event: HookEvent) -> HookPosition:
    """Where somebody is who hears this next and has missed nothing: elsewhere than ``last``, if
    something between the two is gone."""
    if event.point_id:
        return HookPosition(event.id, event.point_id - 1)
    return HookPosition(EventId(event.id - 1), last.point_id)


def after(last: HookPosition, event: HookEvent) -> HookPosition:
    """Where somebody is who has heard it."""
    return HookPosition(event.id, event.point_id or last.point_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class HookLag:
    """How far a hook is behind. ``oldest_age_ms``: how long ago the first was committed that it
    has not heard, 0 if it has heard all; ``is_told``: a process is there that tells it."""

    name: str
    heard: HookPosition
    newest: HookPosition
    oldest_age_ms: int
    is_told: bool

    @property
    def behind_count(self) -> int:
        """Events and points that it has not heard."""
        return max(0, self.newest.total - self.heard.total)
