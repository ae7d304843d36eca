"""Whether the clock may be believed, before anything is deleted for its age.

A clock that is a year ahead makes everything expired; one that is a year back stamps new files so
that they are expired as soon as it is right. What is known besides: the clock of the database
(where it has one of its own), and the newest time at which anything happened there.
"""

from __future__ import annotations

from changemanager.clock import span_text
from changemanager.manifest import KnownTimes

CLOCKS_APART_MS_MAX = 600_000
"""More than this between this host's clock and the database's is doubted."""
SILENCE_MS = 86_400_000
"""So long nothing may have happened before a purge that takes much is doubted."""
MUCH_FILES = 100
"""A purge of fewer files never takes suspiciously much."""


def stamp_ms(now_ms: int, known: KnownTimes) -> int:
    """The time at which something happens now: never before what happened already."""
    return known.store_ms if known.store_ms is not None else max(now_ms, known.newest_ms)


def is_plausible(now_ms: int, known: KnownTimes) -> bool:
    """Whether a time may be noted as a sign of life: it agrees with all that is known."""
    if known.store_ms is not None:
        return abs(now_ms - known.store_ms) <= CLOCKS_APART_MS_MAX
    return now_ms - known.newest_ms <= SILENCE_MS or not known.newest_ms


def is_not_behind(now_ms: int, known: KnownTimes) -> bool:
    """Whether a time that lies after now must be wrong: the clock is not the one that is."""
    if known.store_ms is not None:
        return abs(now_ms - known.store_ms) <= CLOCKS_APART_MS_MAX
    return known.newest_ms <= now_ms + CLOCKS_APART_MS_MAX


def clock_doubt(
    now_ms: int, known: KnownTimes, *, retain_ms: int, removed_count: int, present_count: int
) -> str:
    """Why a purge at this time is not to be trusted; empty if it is.

    ``removed_count`` of ``present_count`` files would go.
    """
    if known.store_ms is not None and abs(now_ms - known.store_ms) > CLOCKS_APART_MS_MAX:
        apart = span_text(abs(now_ms - known.store_ms))
        side = "ahead of" if now_ms > known.store_ms else "behind"
        return f"this host's clock is {apart} {side} the database's"
    silence_ms = now_ms - known.newest_ms
    if not known.newest_ms or not removed_count or silence_ms <= SILENCE_MS:
        return ""
    is_much = removed_count >= MUCH_FILES and 2 * removed_count >= present_count
    if silence_ms <= retain_ms + 2 * SILENCE_MS and not is_much:
        return ""
    return (
        f"{removed_count} of {present_count} files would go, but nothing is known to have happened "
        f"for {span_text(silence_ms)}: either nobody was here, or the clock is ahead"
    )
