"""Pins that kept files for longer than their budget: what is written down of it, and who asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenUp:
    """That files which a pin held were purged, or are about to be: since when, and why."""

    at_ms: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldFiles:
    """Archived files of one hour that a pin holds; ``oldest_ms`` is the oldest clock among them."""

    oldest_ms: int
    size_bytes: int


class GivenUpStore(Protocol):
    """What the manifest knows of budgets."""

    def give_up(self, holder: str, *, seen_created_at_ms: int, given_up: GivenUp) -> bool:
        """Write down that a pin is given up, before the first of its files goes.

        False, and no change, if it is not the pin that was seen: it was put anew, or is gone. What
        was written down first stays. A pin that is given up goes on to hold what it holds.
        """
        ...

    def held_files(self, holder: str) -> tuple[HeldFiles, ...]:
        """What a pin holds of all cmroots, in sums for each hour, oldest first."""
        ...
