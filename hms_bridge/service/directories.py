"""Whole directories: made, moved, removed when empty. One rename where the file system has it."""

from __future__ import annotations

import errno
from collections.abc import Callable

from changemanager.durable import settle_names
from changemanager.errors import LocationError
from changemanager.filesystem.volume import FileKind, Placement
from changemanager.lease import never_lost
from changemanager.location import ListedFile, Location, Resolver, list_tree, parse_uri


class Directories:
    """The few things that the service does to directories itself. All may raise OSError."""

    def __init__(self, resolve: Resolver) -> None:
        self._resolve = resolve

    def make(self, uri: str) -> bool:
        """Make a directory with all above it; whether it was not there."""
        place = self._resolve(uri)
        status = place.status()
        if status is not None and status.kind is FileKind.DIRECTORY:
            return False
        if not place.volume.capabilities.has_directories and _has_names_below(place):
            return False
        place.volume.make_directory(place.path)
        return True

    def exists(self, uri: str) -> bool:
        """Whether anything is at a place."""
        return self._resolve(uri).status() is not None

    def file_sizes_bytes(self, uri: str) -> list[int]:
        """Of each file below a place; names that begin with ``_`` or ``.`` are hidden, and what
        is below them."""
        return list(self.visible_files(uri).values())

    def visible_files(self, uri: str) -> dict[str, int]:
        """Sizes in bytes of the same files, by path below the place."""
        return {
            file.path: file.size_bytes
            for file in list_tree(self._resolve(uri))
            if file.kind is FileKind.FILE
            and not any(name.startswith(("_", ".")) for name in file.path.split("/"))
        }

    def listing(self, uri: str) -> tuple[ListedFile, ...]:
        """Everything below a place, as it is now."""
        return list_tree(self._resolve(uri))

    def real_place(self, uri: str) -> str:
        """Where a location leads to once links are followed; itself where there are none."""
        try:
            parsed = parse_uri(uri)
        except LocationError:
            return uri
        if parsed.file_system[0] != "file":
            return uri
        place = self._resolve(uri)
        return f"{parsed.prefix}{place.volume.real_path(place.path)}"

    def write_file(self, uri: str, path: str, content: bytes) -> None:
        """A small new file below a directory, whole or not there; nothing if it is there."""
        file = self._resolve(uri)
        for name in path.split("/"):
            file = file.child(name)
        if file.status() is not None:
            return
        file.volume.make_directory(file.parent.path)
        part = file.parent.child(f".{file.name}.part")
        if part.status() is not None:
            file.volume.remove_file(part.path)
        file.volume.write_new(part.path, [content])
        if file.volume.place(part.path, file.path) is not Placement.MOVED:
            file.volume.remove_file(part.path)

    def is_renamed_at_once(self, uri: str) -> bool:
        """Whether directories exist by themselves, so that one rename moves one."""
        return self._resolve(uri).volume.capabilities.has_directories

    def remove_empty(self, uri: str) -> bool:
        """Remove a directory if nothing is in it; whether it is gone."""
        place = self._resolve(uri)
        if list_tree(place):
            return False
        if place.status() is not None:
            place.volume.remove_empty_directory(place.path)
        return True

    def move(self, source: str, target: str, proceed: Callable[[], None] = never_lost) -> None:
        """Give a directory another name on the same file system.

        Where directories are only parts of names, files are copied first and removed then, so
        that a crash leaves each of them under at least one name; calling again goes on. What comes
        into the old place meanwhile is moved too.
        ``proceed`` is called before each step; it raises to stop.
        """
        old, new = self._resolve(source), self._resolve(target)
        volume = old.volume
        if new.volume is not volume:
            raise OSError(errno.EXDEV, f"is on another file system than {new.uri}", old.uri)
        if volume.capabilities.has_atomic_rename:
            volume.make_directory(new.parent.path)
            volume.rename(old.path, new.path)
            # Before a commit names the new place for good.
            for directory in dict.fromkeys((new.parent.path, old.parent.path)):
                settle_names(volume, directory)
            return
        while files := [f for f in list_tree(old) if f.kind is FileKind.FILE]:
            there = {file.path: file for file in list_tree(new)}
            for file in files:
                known = there.get(file.path)
                if known is None or known.size_bytes != file.size_bytes:
                    proceed()
                    volume.copy_file(old.child(file.path).path, new.child(file.path).path)
            for file in files:
                proceed()
                volume.remove_file(old.child(file.path).path)

    def put_back(self, source: str, target: str, proceed: Callable[[], None] = never_lost) -> None:
        """Move what is in a directory into one that is there again, name by name. What has the
        name of something else there stays.
        """
        old, new = self._resolve(source), self._resolve(target)
        self._put_back(old, new, proceed)

    def _put_back(self, old: Location, new: Location, proceed: Callable[[], None]) -> None:
        volume = old.volume
        for status in volume.children(old.path):
            child, place = old.child(status.name), new.child(status.name)
            there = place.status()
            if there is None:
                proceed()
                volume.rename(child.path, place.path)
            elif FileKind.DIRECTORY == status.kind == there.kind:
                self._put_back(child, place, proceed)
        settle_names(volume, new.path)  # before the old names are gone for good
        if not volume.children(old.path):
            volume.remove_empty_directory(old.path)


def _has_names_below(place: Location) -> bool:
    """An object store may have a file of the same name."""
    try:
        return bool(place.volume.children(place.path))
    except FileNotFoundError:
        return False
