"""What a monitor asks of the archive: sums, which a store makes without reading out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveFigures:
    """How an archive stands. `file_count` and `size_bytes` are of what is ARCHIVED in one cmroot,
    and `oldest_archived_at_ms` is the oldest clock among it (None: nothing is archived).

    Of all cmroots: live pins, pins that outlived their budget, intents that are open and when the
    oldest of them was made, and intents that were ABANDONED and are not forgotten yet.
    """

    file_count: int
    size_bytes: int
    oldest_archived_at_ms: int | None
    pin_count: int
    given_up_count: int
    open_intent_count: int
    oldest_open_intent_ms: int | None
    abandoned_intent_count: int


class ArchiveFigureStore(Protocol):
    """The sums of the manifest."""

    def figures(self, cmroot: str, now_ms: int) -> ArchiveFigures:
        """How the archive stands at a time."""
        ...
