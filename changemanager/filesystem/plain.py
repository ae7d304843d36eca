"""Any fsspec file system: object stores, memory, and those without special treatment."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from glob import has_magic
from io import UnsupportedOperation
from typing import Any, BinaryIO, cast

from fsspec import AbstractFileSystem

from changemanager.filesystem.driver_errors import ObjectStoreDriver
from changemanager.filesystem.permissions import Permissions
from changemanager.filesystem.volume import (
    Durability,
    FileKind,
    FileStatus,
    FileSystemCapabilities,
    Placement,
    Volume,
)

_KINDS = {"file": FileKind.FILE, "directory": FileKind.DIRECTORY, "link": FileKind.LINK}
_MTIME_KEYS = ("mtime", "LastModified", "modificationTime", "updated", "last_modified", "created")

OBJECT_STORE = FileSystemCapabilities(
    has_atomic_rename=False,
    has_directories=False,
    can_set_mtime=False,
    has_native_checksum=False,
    durability=Durability.BY_PUT,
)
"""S3 and its kin: a copy appears whole or not at all, and that is all there is."""


def mtime_ms_of(info: Mapping[str, Any]) -> int | None:
    """The modification time in a file's fsspec description; None if it has none.

    Numbers are seconds, except WebHDFS's `modificationTime`, which is milliseconds.
    """
    for key in _MTIME_KEYS:
        value = info.get(key)
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return round(aware.timestamp() * 1000)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return int(value) if key == "modificationTime" else round(value * 1000)
    return None


def name_of(path: str) -> str:
    """The last level of a path."""
    return path.rstrip("/").rpartition("/")[2]


def _give_up(output: Any) -> None:
    """End a stream without its file: closing it would keep what was written so far."""
    discard = getattr(output, "discard", None)
    if discard is None:
        output.close()
        return
    with suppress(OSError):
        discard()
    with suppress(AttributeError):
        output.closed = True


class PlainVolume:
    """An fsspec file system, used through what every one of them offers."""

    def __init__(
        self, fs: AbstractFileSystem | ObjectStoreDriver, capabilities: FileSystemCapabilities
    ) -> None:
        self.fs = fs
        self._capabilities = capabilities

    @property
    def capabilities(self) -> FileSystemCapabilities:
        return self._capabilities

    def status(self, path: str) -> FileStatus | None:
        self.fs.invalidate_cache(path)
        try:
            return self._status_of(self.fs.info(path))
        except FileNotFoundError:
            return None

    def children(self, path: str) -> tuple[FileStatus, ...]:
        self.fs.invalidate_cache(path)
        infos = self.fs.ls(path, detail=True)
        own = path.strip("/")
        # An object store may list a marker object under the directory's own name.
        statuses = [self._status_of(info) for info in infos if info["name"].strip("/") != own]
        return tuple(sorted(statuses, key=lambda status: status.name))

    def _status_of(self, info: Mapping[str, Any]) -> FileStatus:
        kind = FileKind.LINK if info.get("islink") else _KINDS.get(info["type"], FileKind.OTHER)
        return FileStatus(
            name=name_of(info["name"]),
            kind=kind,
            size_bytes=int(info.get("size") or 0),
            mtime_ms=mtime_ms_of(info),
        )

    def descendants(self, path: str) -> tuple[FileStatus, ...]:
        self.fs.invalidate_cache(path)
        own = path.strip("/")
        files = []
        for info in self.fs.find(path, withdirs=True, detail=True).values():
            below = info["name"].strip("/")[len(own) + 1 :]
            status = self._status_of(info)
            if below:
                files.append(replace(status, name=below))
            elif status.kind is not FileKind.DIRECTORY:
                raise NotADirectoryError(errno.ENOTDIR, "is a file", path)
        return tuple(files)

    def real_path(self, path: str) -> str:
        """The path itself: there are no links."""
        return path

    def is_link(self, path: str) -> bool:
        del path
        return False

    def without_links(self) -> Volume:
        """Itself: there are none."""
        return self

    def open_input(self, path: str) -> BinaryIO:
        return cast(BinaryIO, self.fs.open(path, "rb"))

    def read(self, path: str, length_bytes: int | None = None) -> bytes:
        """The bytes of a small file, or its first ones, in one call."""
        # An object store refuses a range of nothing, and one of an empty file.
        limits = {} if length_bytes is None else {"end": length_bytes}
        data: bytes = b"" if length_bytes == 0 else self.fs.cat_file(path, **limits)
        return data

    def permissions(self, path: str) -> Permissions | None:
        """None: who may read an object is said by the policies of its bucket."""
        del path
        return None

    def open_output(self, path: str, like: Permissions | None = None) -> BinaryIO:
        del like
        return cast(BinaryIO, self.fs.open(path, "wb"))

    def write_new(
        self, path: str, chunks: Iterable[bytes], like: Permissions | None = None
    ) -> None:
        """Write a whole file; an object store keeps it once the stream is closed.

        What could not be written in full is given up there: no file, no parts of an upload.
        """
        del like
        output = self.fs.open(path, "wb")
        try:
            for chunk in chunks:
                output.write(chunk)
        except BaseException:
            _give_up(output)
            raise
        output.close()

    def make_directory(
        self, path: str, permission: int | None = None, *, limit: int = 0o777
    ) -> None:
        """Nothing: an object store needs no directories, and knows no permissions."""

    def make_working_directory(self, path: str) -> None:
        """Make a directory with those above it."""
        self.fs.makedirs(path, exist_ok=True)

    def place(self, source: str, target: str) -> Placement:
        """Copy on the server's side."""
        if self.status(target) is not None:
            raise FileExistsError(target)
        self.copy_file(source, target)
        return Placement.COPIED

    def copy_file(self, source: str, target: str) -> None:
        """Copy on the server's side."""
        self.fs.cp_file(source, target)

    def rename(self, source: str, target: str) -> None:
        """Copy every file below, then remove the old ones.

        A failure before all are copied takes the copies back, so that the old name stays whole; one
        after that leaves files under both names. Nobody may read `target` before this returns.
        """
        if self.status(target) is not None:
            raise FileExistsError(errno.EEXIST, "is there already", target)
        names = self.fs.find(source)
        if not names:
            raise FileNotFoundError(errno.ENOENT, "nothing is there to be renamed", source)
        own, copies = source.strip("/"), []
        try:
            for name in names:
                copies.append(target.rstrip("/") + name.strip("/")[len(own) :])
                self.fs.cp_file(name, copies[-1])
        except BaseException:
            for copy in copies:
                with suppress(OSError):
                    self.fs.rm_file(copy)
            raise
        for name in names:
            self.fs.rm_file(name)

    def remove_file(self, path: str) -> None:
        self.fs.rm_file(path)

    def remove_empty_directory(self, path: str) -> None:
        """Remove one empty directory; an object store has none to remove."""
        if self._capabilities.has_directories:
            self.fs.rmdir(path)

    def remove_tree(self, path: str) -> None:
        """Remove everything below a name, and the name."""
        if not has_magic(path):
            self.fs.rm(path, recursive=True)
            return
        # fsspec would take the name for a pattern, and remove what it matches.
        names = self.fs.find(path)
        if not names:
            raise FileNotFoundError(errno.ENOENT, "nothing is there to be removed", path)
        for name in names:
            self.fs.rm_file(name)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        raise UnsupportedOperation(f"no file time can be set: {path} to {mtime_ms}")

    def set_mode(self, path: str, mode: int) -> None:
        """Nothing: an object has none."""

    def sync_file(self, path: str) -> None:
        raise UnsupportedOperation(f"no explicit sync: {path}")

    def sync_directory(self, path: str) -> None:
        raise UnsupportedOperation(f"no explicit sync: {path}")

    def native_checksum(self, path: str) -> str:
        raise UnsupportedOperation(f"no checksum of its own: {path}")

    def keeps_attributes(self, directory: str) -> bool:
        del directory
        return False

    def attribute(self, path: str, name: str) -> bytes | None:
        raise UnsupportedOperation(f"no extended attributes: {name} of {path}")

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        raise UnsupportedOperation(f"no extended attributes: {name}={value!r} of {path}")
