"""How long, and how much, a dump or a policy may keep in the archive beyond its retention.

Without an end a replica that nobody wants any more would fill the archive. A budget counts for each
file by itself: what is within it stays, also of a pin that was given up. People's holds have an end
of their own, or none on purpose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from changemanager.clock import span_text
from changemanager.config import PinBudget
from changemanager.given_up import HeldFiles
from changemanager.manifest import Pin, PinKind
from changemanager.plausible_time import TimeJudgement
from changemanager.retention import ArchivedItem, Outlived

_KINDS = frozenset({PinKind.DUMP, PinKind.POLICY})


def outlived(
    items: Sequence[ArchivedItem],
    holders: Mapping[str, tuple[str, ...]],
    pins: Sequence[Pin],
    budget: PinBudget,
    time: TimeJudgement,
) -> Mapping[str, Mapping[str, Outlived]]:
    """Of expired items: which of their holders hold them no more, and why, by name; pure."""
    by_name: dict[str, dict[str, Outlived]] = {}
    for pin in pins:
        if pin.kind not in _KINDS:
            continue
        held = [item for item in items if pin.holder in holders.get(item.name, ())]
        for name, reason in _outlived_of(pin, held, budget, time):
            by_name.setdefault(name, {})[pin.holder] = Outlived(pin.created_at_ms, reason)
    return by_name


def _outlived_of(
    pin: Pin, held: Sequence[ArchivedItem], budget: PinBudget, time: TimeJudgement
) -> Sequence[tuple[str, str]]:
    timed = [(item.clock_ms, item) for item in held if item.clock_ms is not None]
    newest_first = sorted(timed, key=lambda pair: (-pair[0], pair[1].name))
    gone, kept_bytes = list[tuple[str, str]](), 0
    too_old = f"it kept files for longer than {span_text(budget.keep_ms)}"
    too_many = f"it kept more than {budget.size_bytes} bytes"
    for clock_ms, item in newest_first:
        if time.age_ms(_needed_since_ms(pin, clock_ms)) > budget.keep_ms:
            gone.append((item.name, too_old))
            continue
        kept_bytes += item.size_bytes if item.is_present else 0
        if budget.size_bytes is not None and kept_bytes > budget.size_bytes:
            gone.append((item.name, too_many))
    return gone


def _needed_since_ms(pin: Pin, clock_ms: int) -> int:
    """A dump may name what was archived long before it."""
    since_ms = pin.created_at_ms if pin.archived_since_ms is None else pin.archived_since_ms
    return max(clock_ms, since_ms)


def budget_ends_ms(
    pin: Pin, held: Sequence[HeldFiles], budget: PinBudget, retain_ms: int
) -> int | None:
    """When the purge gives a pin up, as far as what it holds now shows; None: nothing ends it.

    ``held`` is in the order of time.
    """
    if pin.kind not in _KINDS or not held:
        return None
    oldest_ms = held[0].oldest_ms
    ends = [max(oldest_ms + retain_ms, _needed_since_ms(pin, oldest_ms) + budget.keep_ms)]
    total = 0
    for files in held:
        total += files.size_bytes
        if budget.size_bytes is not None and total > budget.size_bytes:
            ends.append(files.oldest_ms + retain_ms)
            break
    return min(ends)
