"""The answer to "may this directory be deleted?"."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletionVerdict:
    """``root``: the allowed root that a directory lies below; None if there is none.
    ``refusal`` says why it must stay; None if it may go."""

    place: str
    root: str | None
    refusal: str | None = None
