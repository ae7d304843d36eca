"""Whose file is it, when no row of the manifest says so?

A Hive beside us archives without rows, and a cmroot that was moved has its rows under another name.
What Hive leaves is the attribute `user.original-loc`: the place that the file had, from which
database and table are known where they follow Hive's layout (`…/<database>.db/<table>/…`).
What is not known may be anybody's, so every hold on a database counts for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from changemanager.archive import ORIGINAL_LOCATION
from changemanager.errors import LocationError
from changemanager.location import Location, parse_uri
from changemanager.manifest import Pin
from changemanager.retention import ArchivedItem

_DATABASE_SUFFIX = ".db"


def original_location(place: Location) -> str | None:
    """Where an archived file came from, as Hive says; None if nobody says or can be asked."""
    volume = place.volume
    try:
        if not volume.keeps_attributes(place.parent.path):
            return None
        value = volume.attribute(place.path, ORIGINAL_LOCATION)
    except OSError:
        return None
    return value.decode("utf-8", "replace") if value else None


def owner_of(original: str | None) -> tuple[str, str] | None:
    """Database and table of a place in Hive's layout; None if it does not follow it.

    As Warehouse.getDatabasePath names directories; the default database has none of its own.
    """
    if original is None:
        return None
    try:
        levels = parse_uri(original).path.lower().split("/")
    except LocationError:
        return None
    for number, level in enumerate(levels[:-1]):
        if level.endswith(_DATABASE_SUFFIX) and level != _DATABASE_SUFFIX:
            return level.removesuffix(_DATABASE_SUFFIX), levels[number + 1]
    return None


def holders_of_strays(
    originals: Mapping[str, str | None],
    items: Collection[ArchivedItem],
    pins: Collection[Pin],
    now_ms: int,
) -> Mapping[str, tuple[str, ...]]:
    """Who holds files without origins, by name; ``originals`` says where they came from; pure."""
    live = [pin for pin in pins if pin.database is not None and pin.is_live(now_ms)]
    by_name = {}
    for item in items:
        owner = owner_of(originals.get(item.name))
        holders = sorted(pin.holder for pin in live if _may_hold(pin, owner, item.clock_ms))
        if holders:
            by_name[item.name] = tuple(holders)
    return by_name


def _may_hold(pin: Pin, owner: tuple[str, str] | None, clock_ms: int | None) -> bool:
    since_ms = pin.archived_since_ms
    if since_ms is not None and clock_ms is not None and clock_ms < since_ms:
        return False
    # What may be anybody's is kept for everybody: it is a question of space, the other of rows.
    if owner is None:
        return True
    return owner[0] == pin.database and pin.table in {None, owner[1]}
