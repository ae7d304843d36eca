"""Who pins how much of an archive: what an administrator is shown before pins are released."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from changemanager.errors import PinError
from changemanager.manifest import ArchivePins, EntryState, Pin
from changemanager.retention import ArchivedItem


@dataclass(frozen=True, kw_only=True, slots=True)
class PinUse:
    """A pin, and the files of the archive that it holds.

    A dump's pin names files also that are still at their source: ``named_count`` counts all.
    """

    pin: Pin
    is_live: bool
    named_count: int
    file_count: int
    size_bytes: int


def pin_uses(pins: Sequence[Pin], items: Sequence[ArchivedItem], now_ms: int) -> tuple[PinUse, ...]:
    """What each pin holds, in the order given. An expired pin holds what it held."""
    return tuple(_use(pin, items, now_ms) for pin in pins)


def _use(pin: Pin, items: Sequence[ArchivedItem], now_ms: int) -> PinUse:
    held = [
        item.size_bytes
        for item in items
        if item.is_present
        and (item.entry is None or item.entry.state is not EntryState.PURGED)
        and pin.holds(item.name, item.entry)
    ]
    return PinUse(
        pin=pin,
        is_live=pin.is_live(now_ms),
        named_count=len(pin.names),
        file_count=len(held),
        size_bytes=sum(held),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleasePlan:
    """The pins that a release takes away, as they were when it was planned."""

    uses: tuple[PinUse, ...]


def plan_release(uses: Sequence[PinUse], holders: Collection[str]) -> ReleasePlan:
    """The pins of these holders. Raises PinError for a holder without a pin."""
    known = {use.pin.holder: use for use in uses}
    for holder in sorted(set(holders) - known.keys()):
        if holder.startswith("intent:"):
            raise PinError(
                f"{holder} is a removal under way, which ends by itself; run the cleaner"
            )
        near = sorted(name for name in known if name.startswith(f"{holder}:"))
        hint = f"; there is {', '.join(near[:5])}" if near else ""
        raise PinError(f"no pin is called '{holder}'{hint}; 'hms-bridge cm pins' lists them")
    return ReleasePlan(uses=tuple(known[holder] for holder in dict.fromkeys(holders)))


def release(manifest: ArchivePins, plan: ReleasePlan) -> tuple[str, ...]:
    """Take the pins away; the holders. One that was pinned anew since the plan stays."""
    now = {pin.holder: pin for pin in manifest.pins()}
    return tuple(
        use.pin.holder
        for use in plan.uses
        if now.get(use.pin.holder) == use.pin and manifest.remove_pin(use.pin.holder)
    )
