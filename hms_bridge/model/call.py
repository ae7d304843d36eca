"""One call of a client, as a monitor counts it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class CallOutcome(Enum):
    """How a call ended, as its client saw it; the value is what a monitor reads."""

    OK = "ok"
    REFUSED = "refused"
    """It asked for what there is not, or what is not allowed."""
    FAILED = "failed"
    """The metastore could not answer, whatever was asked."""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """``method`` is one that the server answers, None for any other name. ``duration_ms``: from
    when its message was there until the answer was ready to be sent."""

    method: str | None
    outcome: CallOutcome
    duration_ms: int
