"""Which paths may be recycled or deleted at all, and which may be read for somebody else.

Both ask where a place leads once symbolic links are followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from changemanager.errors import OutsideRootsError, PathNotContainedError
from changemanager.filesystem.volume import FileKind, Volume
from changemanager.location import Location, Resolver, is_within, levels_of, parse_uri


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


class RealRoots:
    """Directories, as links lead to them, and whether places lie in one of them."""

    def __init__(self, roots: Iterable[Location]) -> None:
        places = tuple(roots)
        self.servers = {parse_uri(root.uri).server for root in places}
        self._roots = {
            (root.volume, levels_of(root.volume.real_path(root.path))) for root in places
        }

    def has(self, volume: Volume, real_path: str) -> bool:
        """Whether a path without links is one of them, or below one: however many there are, each
        level above it is looked up once."""
        levels = levels_of(real_path)
        return any((volume, levels[:depth]) in self._roots for depth in range(len(levels) + 1))


@dataclass(frozen=True, slots=True)
class ResolverWithin:
    """Resolves places below some roots, and no others, for reading.

    Links are followed at each call, and the location is without them: a link that is put on the
    way between the call and the reading is refused by the file system (`Volume.without_links`).
    The file system of another place is not connected to. Roots are resolved once in each process.
    """

    resolve: Resolver
    roots: tuple[str, ...]
    _real: list[RealRoots] = field(default_factory=list, compare=False, repr=False)

    def __call__(self, text: str) -> Location:
        """The location. Raises OutsideRootsError; LocationError as the resolver does."""
        parsed = parse_uri(text)
        if parsed.scheme and parsed.server not in self._real_roots.servers:
            raise self._outside(parsed.uri, "")
        place = self.resolve(text)
        real = place.volume.real_path(place.path)
        if not self._real_roots.has(place.volume, real):
            if real == place.path:
                raise self._outside(place.uri, "")
            leads_to = replace(parse_uri(place.uri), path=real).uri
            raise self._outside(leads_to, f", to which {place.uri} leads,")
        # A link in the place of a file stays itself, so that it is refused as no file.
        if place.volume.is_link(place.path) and not _is_directory(place.volume, real):
            real = f"{place.volume.real_path(place.parent.path).rstrip('/')}/{place.name}"
        return Location(place.uri, real, place.volume.without_links())

    def _outside(self, where: str, how: str) -> OutsideRootsError:
        roots = ", ".join(self.roots) or "every place that was named"
        return OutsideRootsError(
            f"{where}{how} is outside of {roots}, where files may come from", where
        )

    @property
    def _real_roots(self) -> RealRoots:
        if not self._real:
            self._real.append(RealRoots(map(self.resolve, self.roots)))
        return self._real[0]

    def __reduce__(self) -> tuple[object, ...]:
        """Another process follows the links of the roots itself."""
        return ResolverWithin, (self.resolve, self.roots)


def _is_directory(volume: Volume, path: str) -> bool:
    status = volume.status(path)
    return status is not None and status.kind is FileKind.DIRECTORY


def require_outside(inner: Location, outer: Location) -> None:
    """Two directories of one file system that do not hold each other."""
    if is_within(inner.path, outer.path) or is_within(outer.path, inner.path):
        raise PathNotContainedError(
            f"{inner.uri} and {outer.uri} must not hold one another: Hive's purge lists the cmroot "
            "and stops at directories",
            inner.uri,
        )
