"""Which paths may be recycled or deleted at all."""

from __future__ import annotations

from collections.abc import Sequence

from changemanager.errors import PathNotContainedError
from changemanager.filesystem.volume import FileKind, Volume
from changemanager.location import Location, is_within, levels_of, parse_uri


class RealPaths:
    """Where places lead once links are followed; of a directory it is looked up once, for a moment
    in which many of its children are asked about."""

    def __init__(self) -> None:
        self._known: dict[tuple[Volume, str], str] = {}

    def of(self, place: Location) -> str:
        """The path."""
        key = (place.volume, place.path)
        if key not in self._known:
            self._known[key] = place.volume.real_path(place.path)
        return self._known[key]

    def of_any(self, place: Location) -> str:
        """The path, whatever is there: only what is a link itself is followed by itself."""
        if place.parent == place or place.volume.is_link(place.path):
            return self.of(place)
        return self.of_no_link(place)

    def of_no_link(self, place: Location) -> str:
        """The path of what is there and no link itself."""
        return f"{self.of(place.parent).rstrip('/')}/{place.name}"


def require_contained(
    victim: Location,
    root: Location,
    spared: Sequence[Location] = (),
    real_paths: RealPaths | None = None,
) -> None:
    """Refuse every path that must not be recycled or deleted.

    A victim is strictly below `root` (a warehouse, or the directory of a table), also once links
    are followed; it is no link itself; it neither holds nor lies in a `spared` directory (the
    cmroot, the trash). A whole file system is never a root. Raises PathNotContainedError.
    """

    def refuse(why: str) -> PathNotContainedError:
        return PathNotContainedError(f"{victim.uri} is left alone: {why}", victim.uri)

    if parse_uri(root.uri).path == "/" and root.volume.capabilities.has_directories:
        raise refuse(f"its root {root.uri} is a whole file system; name the warehouse directory")
    if not victim.is_below(root):
        raise refuse(f"it is not below {root.uri}")
    if levels_of(victim.path) == levels_of(root.path):
        raise refuse("it is the root itself")
    status = victim.status()
    if status is not None and status.kind not in {FileKind.FILE, FileKind.DIRECTORY}:
        raise refuse("it is a symbolic link or a special file")
    known = real_paths or RealPaths()
    real = known.of(victim) if status is None else known.of_no_link(victim)
    if not is_within(real, known.of(root)):
        raise refuse(f"a symbolic link on its way leads out of {root.uri}, to {real}")
    for place in spared:
        if place.volume is not victim.volume:
            continue
        real_place = known.of(place)
        if is_within(real, real_place) or is_within(real_place, real):
            raise refuse(f"{place.uri} keeps archived files and is never a victim")


def require_outside(inner: Location, outer: Location) -> None:
    """Two directories of one file system that do not hold each other."""
    if is_within(inner.path, outer.path) or is_within(outer.path, inner.path):
        raise PathNotContainedError(
            f"{inner.uri} and {outer.uri} must not hold one another: Hive's purge lists the cmroot "
            "and stops at directories",
            inner.uri,
        )
