"""Dumps that are about to be finished: what is written down before, so that whoever wants to hear
of their end does, whatever is killed in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class AnnouncementStore(Protocol):
    """What the manifest knows of ends that are near; nothing where nobody wants to hear of them."""

    def announce(self, holder: str, facts: Mapping[str, str | int | None]) -> None:
        """What a pin's holder is about to finish; in the place of what was announced of it."""
        ...

    def announced(self, prefix: str) -> tuple[str, ...]:
        """Holders whose names begin so, of whom something is announced, sorted."""
        ...

    def settle_announced(self, holder: str, *, is_finished: bool) -> bool:
        """It came to its end, and hooks hear of it, or it never will; False if nothing is
        announced: another process has settled it."""
        ...
