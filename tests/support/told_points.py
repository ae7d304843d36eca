"""A hook that is registered, and the points that it would be told."""

from __future__ import annotations

import json
from typing import Any

from hms_bridge.model.hook import HookEvent, HookPosition
from hms_bridge.model.ids import EventId
from hms_bridge.service.metastore_service import MetastoreService

START = HookPosition(EventId(0), 0)


def listen(metastore: MetastoreService, hook: str = "hook") -> None:
    """As a process does that opens the database once the hook is registered."""
    metastore.hook_positions.register(hook)
    metastore._transactions.look_for_hooks()


def points(metastore: MetastoreService) -> list[HookEvent]:
    """All, in the order of commits."""
    _, told = metastore.hook_positions.following(START, 10_000)
    return [event for event in told if event.point_id]


def messages(metastore: MetastoreService, kind: str) -> list[dict[str, Any]]:
    """Those of the points of a type."""
    return [json.loads(event.message) for event in points(metastore) if event.type == kind]
