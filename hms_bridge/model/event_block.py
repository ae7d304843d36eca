"""How large the event log is, in blocks of events that follow on each other; and what a budget of
bytes makes of that. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hms_bridge.model.ids import EventId


@dataclass(frozen=True, kw_only=True, slots=True)
class EventBlock:
    """Some events of the log: their last id, how many bytes their messages have, from when the
    oldest of them is."""

    last_event_id: EventId
    size_bytes: int
    oldest_seconds: int


def kept_since_seconds(
    blocks: Sequence[EventBlock], budget_bytes: int | None, before_seconds: int
) -> int | None:
    """From when the events are that a budget has room for, the newest of them; None: all of them.

    ``blocks``: ascending, of events from before a time; those from then on cost nothing.
    """
    if budget_bytes is None:
        return None
    total, since = 0, before_seconds
    for block in reversed(blocks):
        total += block.size_bytes
        if total > budget_bytes:
            return since
        since = block.oldest_seconds
    return None


def budget_ends_seconds(
    blocks: Sequence[EventBlock], budget_bytes: int | None, after: EventId, keep_seconds: int
) -> int | None:
    """When the first event after ``after`` goes, as far as the log shows now: it makes room once so
    many later ones are older than ``keep_seconds`` that they do not fit. None: all of them fit.

    A block that an event parts counts as a whole, so the end comes out rather too early.
    """
    total = 0
    for block in blocks if budget_bytes is not None else ():
        if block.last_event_id <= after:
            continue
        total += block.size_bytes
        if total > (budget_bytes or 0):
            return block.oldest_seconds + keep_seconds
    return None
