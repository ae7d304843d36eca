"""Which events of a dump are replayed in a row, so that what they need may be brought together.

Pure. Transactions alone are in a window, and what leaves tables as they are: nothing in it makes,
drops, renames or moves what the commits after it write to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.reader import DumpedEvent

_EVENTS_MAX = 400
_WEIGHT_MAX = 16 << 20
"""Less than what a job of other processes is worth (``CopyLimits``), and copied in a moment: who
reads the replica waits for the first commit of a window until the last one's files are there."""


def windows_of(
    events: Iterable[DumpedEvent],
    is_together: Callable[[DumpedEvent], bool],
    weights: Mapping[EventId, int],
) -> Iterator[tuple[DumpedEvent, ...]]:
    """All events in their order; each window as long as may be. ``weights``: bytes that an event
    brings, nothing for those that bring none."""
    window: list[DumpedEvent] = []
    weight = 0
    for event in events:
        own = weights.get(event.id, 0)
        is_alone = not is_together(event)
        is_full = len(window) >= _EVENTS_MAX or weight + own > _WEIGHT_MAX
        if window and (is_alone or is_full):
            yield tuple(window)
            window, weight = [], 0
        window.append(event)
        weight += own
        if is_alone:
            yield tuple(window)
            window, weight = [], 0
    if window:
        yield tuple(window)
