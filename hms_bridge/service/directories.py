"""Whole directories: made, moved, removed when empty. One rename where the file system has it."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from changemanager.containment import RealPaths
from changemanager.durable import settle_names
from changemanager.errors import LocationError
from changemanager.filesystem.volume import FileKind, Placement
from changemanager.lease import never_lost
from changemanager.location import (
    ListedFile,
    Location,
    Resolver,
    is_below,
    list_tree,
    parse_uri,
    walk_tree,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class WalkLimit:
    """How much of a directory is walked for one call of a client."""

    names_max: int = 100_000
    seconds_max: float = 10.0

    def of(self, walk: Iterable[ListedFile], uri: str) -> Iterator[ListedFile]:
        """A walk that ends with an OSError once it is longer."""
        until = time.monotonic() + self.seconds_max
        for number, file in enumerate(walk, start=1):
            if number > self.names_max or time.monotonic() > until:
                raise OSError(
                    errno.EFBIG,
                    f"has more than {self.names_max} names, or takes longer to list than "
                    f"{self.seconds_max:g} s",
                    uri,
                )
            yield file


_LIMIT = WalkLimit()


class Directories:
    """The few things that the service does to directories itself. All may raise OSError."""

    def __init__(self, resolve: Resolver, limit: WalkLimit = _LIMIT) -> None:
        self._resolve = resolve
        self._limit = limit

    def is_below_any(self, uri: str, roots: Iterable[str]) -> bool:
        """Whether a place is one of the roots, or below it, on the same file system. Its text
        decides: links below a root are of who may write there. LocationError."""
        place = self._resolve(uri)
        # The file systems of roots that it cannot be below need not be asked.
        return any(place.is_below(self._resolve(root)) for root in roots if is_below(uri, root))

    def make_all(self, uris: Sequence[str], begun: list[str]) -> None:
        """Make directories with all above them. All are on the disk when this returns: what holds a
        thousand new ones is brought there once. ``begun`` gets each that was not there, before it
        is made: a failure may leave it."""
        changed: dict[str, Location] = {}
        for uri in uris:
            place = self._resolve(uri)
            if _is_there(place):
                continue
            if place.volume.capabilities.has_sync:
                changed |= {above.uri: above for above in _above_missing(place)}
            begun.append(uri)
            place.volume.make_working_directory(place.path)
        for above in sorted(changed.values(), key=lambda place: len(place.path)):
            settle_names(above.volume, above.path)

    def exists(self, uri: str) -> bool:
        """Whether anything is at a place."""
        return self._resolve(uri).status() is not None

    def file_sizes_bytes(self, uri: str) -> list[int]:
        """Of each file below a place; names that begin with ``_`` or ``.`` are hidden, and what
        is below them."""
        return list(self.visible_files(uri).values())

    def visible_files(self, uri: str) -> dict[str, int]:
        """Sizes in bytes of the same files, by path below the place. OSError (EFBIG) where the
        walk is longer than its limit."""
        return {
            file.path: file.size_bytes
            for file in self._limit.of(walk_tree(self._resolve(uri)), uri)
            if _is_visible_file(file)
        }

    def first_visible_file(self, uri: str) -> str | None:
        """One of the same files, by path below the place; None if there is none."""
        files = (file for file in walk_tree(self._resolve(uri)) if _is_visible_file(file))
        return next((file.path for file in files), None)

    def listing(self, uri: str, *, is_limited: bool = False) -> tuple[ListedFile, ...]:
        """Everything below a place, as it is now. ``is_limited``: OSError (EFBIG) where the walk is
        longer than its limit."""
        walk = walk_tree(self._resolve(uri))
        return tuple(self._limit.of(walk, uri) if is_limited else walk)

    def real_places(self, uris: Iterable[str]) -> dict[str, str]:
        """Where locations lead to once links are followed; themselves where there are none."""
        known = RealPaths()
        return {uri: self._real_place(uri, known) for uri in uris}

    def _real_place(self, uri: str, known: RealPaths) -> str:
        try:
            parsed = parse_uri(uri)
        except LocationError:
            return uri
        if parsed.file_system[0] != "file":
            return uri
        return f"{parsed.prefix}{known.of_any(self._resolve(uri))}"

    def write_file(self, uri: str, path: str, content: bytes) -> bool:
        """A small new file below a directory, whole and on the disk; False if it was there."""
        file = self._resolve(uri).child(path)
        if file.status() is not None:
            return False
        file.volume.make_directory(file.parent.path)
        part = file.parent.child(f".{file.name}.part")
        if part.status() is not None:
            file.volume.remove_file(part.path)
        file.volume.write_new(part.path, [content])
        if file.volume.place(part.path, file.path) is not Placement.MOVED:
            file.volume.remove_file(part.path)
        settle_names(file.volume, file.parent.path)
        return True

    def unwrite_file(self, uri: str, path: str) -> None:
        """Remove what :meth:`write_file` wrote, and its directory if nothing else is in it."""
        file = self._resolve(uri).child(path)
        if file.status() is not None:
            file.volume.remove_file(file.path)
            self.remove_empty(file.parent.uri)

    def remove_empty(self, uri: str) -> bool:
        """Remove a directory if nothing is in it; whether it is gone."""
        place = self._resolve(uri)
        if next(walk_tree(place), None) is not None:
            return False
        if place.status() is not None:
            place.volume.remove_empty_directory(place.path)
        return True

    def move(
        self, source: str, target: str, token: str, proceed: Callable[[], None] = never_lost
    ) -> None:
        """Give a directory another name on the same file system. FileExistsError.

        Where directories are only parts of names, files are copied first and removed then, so
        that a crash leaves each of them under at least one name. What comes into the old place
        meanwhile is moved too. ``proceed`` is called before each step; it raises to stop.
        A hidden file, named after ``token``, distinguishes what was moved from what others
        put at the new place; :meth:`end_move` removes it.
        """
        old, new = self._resolve(source), self._resolve(target)
        if new.volume is not old.volume:
            raise OSError(errno.EXDEV, f"is on another file system than {new.uri}", old.uri)
        if old.volume.capabilities.has_atomic_rename:
            self._set_mark(old, token)
            _rename(old, new)
            return
        is_marked = False
        while files := _files(old):
            there = _files(new)
            if there and not is_marked:
                raise FileExistsError(errno.EEXIST, "is there already", new.uri)
            _copy(old, new, files, there, proceed)
            is_marked = True
            self._set_mark(new, token)  # all is there, before the first of the old ones goes
            for path in files:
                proceed()
                old.volume.remove_file(old.child(path).path)

    def move_back(
        self, source: str, target: str, token: str, proceed: Callable[[], None] = never_lost
    ) -> None:
        """Undo a move, however far it came, name by name if somebody has written to the old place
        since. What others put at the new place, because nothing had come there, is not touched.

        Raises OSError if files of one name are in both, or if the old place is gone and what is at
        the new one has no mark.
        """
        old, new = self._resolve(source), self._resolve(target)
        if new.child(_mark(token)).status() is None:
            if old.status() is None and new.status() is not None:  # an older version set no marks
                raise OSError(
                    f"{old.uri} is not there, and nobody can tell whether {new.uri} was moved from "
                    "there: if it was, move it back"
                )
            if not old.volume.capabilities.has_atomic_rename:
                _remove_copies(old, new, proceed)
        elif not old.volume.capabilities.has_atomic_rename:
            _copy_back(new, old, token, proceed)
        elif old.status() is None:
            _rename(new, old)
        else:
            self._put_back(new, old, token, proceed)
        self._remove_mark(old, token)

    def end_move(self, place: str, token: str) -> None:
        """It is where it is now."""
        self._remove_mark(self._resolve(place), token)

    def _put_back(
        self, new: Location, old: Location, token: str, proceed: Callable[[], None]
    ) -> None:
        _merge(new, old, _mark(token), proceed)
        left = {status.name for status in new.volume.children(new.path)} - {_mark(token)}
        if left:
            raise _both_there(old, new)
        self._remove_mark(new, token)  # last, so that a crash before leads here again
        new.volume.remove_empty_directory(new.path)

    def _set_mark(self, place: Location, token: str) -> None:
        mark = place.child(_mark(token))
        if mark.status() is None:
            mark.volume.write_new(mark.path, [b""])
        settle_names(place.volume, place.path)  # it must not come later than what it marks

    def _remove_mark(self, place: Location, token: str) -> None:
        mark = place.child(_mark(token))
        if mark.status() is not None:
            mark.volume.remove_file(mark.path)


def _mark(token: str) -> str:
    return f".hms_bridge_move_{token}"


def _is_there(place: Location) -> bool:
    status = place.status()
    if status is not None and status.kind is FileKind.DIRECTORY:
        return True
    return not place.volume.capabilities.has_directories and _has_names_below(place)


def _above_missing(place: Location) -> Iterator[Location]:
    """The directories that get a new name when a place is made."""
    while place.status() is None and place.parent.path != place.path:
        place = place.parent
        yield place


def _rename(old: Location, new: Location) -> None:
    old.volume.make_directory(new.parent.path)
    old.volume.rename(old.path, new.path)
    # Before a commit names the new place for good.
    for directory in dict.fromkeys((new.parent.path, old.parent.path)):
        settle_names(old.volume, directory)


def _files(place: Location) -> dict[str, int]:
    """Sizes in bytes by path below the place."""
    return {f.path: f.size_bytes for f in list_tree(place) if f.kind is FileKind.FILE}


def _copy(
    old: Location,
    new: Location,
    files: Mapping[str, int],
    there: Mapping[str, int],
    proceed: Callable[[], None],
) -> None:
    for path, size_bytes in files.items():
        if there.get(path) != size_bytes:
            proceed()
            old.volume.copy_file(old.child(path).path, new.child(path).path)


def _remove_copies(old: Location, new: Location, proceed: Callable[[], None]) -> None:
    """The old place is whole: what was copied of it goes."""
    own = _files(old)
    for path, size_bytes in _files(new).items():
        original, copy = old.child(path), new.child(path)
        if own.get(path) == size_bytes and original.checksum() == copy.checksum():
            proceed()
            copy.volume.remove_file(copy.path)


def _copy_back(new: Location, old: Location, token: str, proceed: Callable[[], None]) -> None:
    files, there = _files(new), _files(old)
    mark = files.pop(_mark(token), None)
    if any(there.get(path, size_bytes) != size_bytes for path, size_bytes in files.items()):
        raise _both_there(old, new)
    _copy(new, old, files, there, proceed)
    for path in [*files, *([] if mark is None else [_mark(token)])]:
        proceed()
        new.volume.remove_file(new.child(path).path)


def _merge(new: Location, old: Location, spared: str, proceed: Callable[[], None]) -> None:
    volume = new.volume
    for status in volume.children(new.path):
        if status.name == spared:
            continue
        child, place = new.child(status.name), old.child(status.name)
        there = place.status()
        if there is None:
            proceed()
            volume.rename(child.path, place.path)
        elif FileKind.DIRECTORY == status.kind == there.kind:
            _merge(child, place, "", proceed)
            if not volume.children(child.path):
                volume.remove_empty_directory(child.path)
    settle_names(volume, old.path)  # before the old names are gone for good


def _both_there(old: Location, new: Location) -> OSError:
    return OSError(
        f"both {old.uri} and {new.uri} are there, with files of the same names; the "
        "table is at the first: check what is in the second and move it away"
    )


def _has_names_below(place: Location) -> bool:
    """An object store may have a file of the same name."""
    try:
        return bool(place.volume.children(place.path))
    except FileNotFoundError:
        return False


def _is_visible_file(file: ListedFile) -> bool:
    names = file.path.split("/")
    return file.kind is FileKind.FILE and not any(name.startswith(("_", ".")) for name in names)


def visible_children(listing: Sequence[ListedFile]) -> dict[str, list[ListedFile]]:
    """What is directly in a listed directory and not hidden, each with its own listing."""
    by_name: dict[str, list[ListedFile]] = {}
    for file in listing:
        name, _, below = file.path.partition("/")
        if name and not name.startswith(("_", ".")):
            children = by_name.setdefault(name, [])
            if below or file.kind is not FileKind.DIRECTORY:
                children.append(replace(file, path=below))
    return by_name
