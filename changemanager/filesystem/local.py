"""The local file system: links, file times, attributes and syncs of the operating system."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from copy import copy
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import BinaryIO

from fsspec.implementations.local import LocalFileSystem

from changemanager.filesystem.plain import PlainVolume, name_of
from changemanager.filesystem.volume import (
    Durability,
    FileKind,
    FileStatus,
    FileSystemCapabilities,
    Placement,
    Volume,
)

_NO_LINKS_HERE = frozenset(
    {errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
)
_NO_SUCH_ATTRIBUTE = frozenset({errno.ENODATA})
_PROBE_ATTRIBUTE = "user.original-loc"
_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def _without_slash(path: str) -> str:
    """At its end, where it would follow a link."""
    return path.rstrip("/") or "/"


def _status(name: str, stat: os.stat_result) -> FileStatus:
    if S_ISDIR(stat.st_mode):
        kind = FileKind.DIRECTORY
    else:
        kind = FileKind.FILE if S_ISREG(stat.st_mode) else FileKind.OTHER
    return FileStatus(
        name=name, kind=kind, size_bytes=stat.st_size, mtime_ms=round(stat.st_mtime * 1000)
    )


def _open_without_links(path: str) -> BinaryIO:
    """Level by level: what is a link by now is not followed. Raises OSError (ELOOP, ENOTDIR) for
    it, and for what is no plain file."""
    *above, name = Path(path).parts
    directory = os.open(above[0], _DIRECTORY)
    try:
        for level in above[1:]:
            below = os.open(level, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = below
        opened = os.open(name, _FILE, dir_fd=directory)
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), path) from error
    finally:
        os.close(directory)
    stream = os.fdopen(opened, "rb")
    if not S_ISREG(os.fstat(opened).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "is no plain file", path)
    return stream


class LocalVolume(PlainVolume):
    """Files of this machine."""

    _follows_links = True

    def __init__(self) -> None:
        super().__init__(
            LocalFileSystem(),
            FileSystemCapabilities(
                has_atomic_rename=True,
                has_directories=True,
                can_set_mtime=True,
                has_native_checksum=False,
                durability=Durability.BY_SYNC,
            ),
        )

    # As fsspec's, which makes a dictionary of all that is known of a file, and a path of each name;
    # to make a path takes longer than to remove what is there.
    def status(self, path: str) -> FileStatus | None:
        try:
            stat = os.lstat(_without_slash(path))
        except FileNotFoundError:
            return None
        return super().status(path) if S_ISLNK(stat.st_mode) else _status(name_of(path), stat)

    def children(self, path: str) -> tuple[FileStatus, ...]:
        place = _without_slash(path)
        if not S_ISDIR(os.lstat(place).st_mode):
            return super().children(path)
        statuses = []
        with os.scandir(place) as entries:
            for entry in entries:
                try:
                    stat = entry.stat(follow_symlinks=False)
                    is_link = S_ISLNK(stat.st_mode)
                    made = self._status_of(self.fs.info(entry)) if is_link else None
                except FileNotFoundError:
                    continue
                statuses.append(made or _status(entry.name, stat))
        return tuple(sorted(statuses, key=lambda status: status.name))

    def real_path(self, path: str) -> str:
        return os.path.realpath(path)

    def is_link(self, path: str) -> bool:
        return os.path.islink(path)  # noqa: PTH114

    def without_links(self) -> Volume:
        twin = copy(self)
        twin._follows_links = False
        return twin

    def open_input(self, path: str) -> BinaryIO:
        if self._follows_links:
            return open(path, "rb")  # noqa: PTH123
        return _open_without_links(path)

    def read(self, path: str, length_bytes: int | None = None) -> bytes:
        with self.open_input(path) as stream:
            return stream.read(-1 if length_bytes is None else length_bytes)

    def open_output(self, path: str) -> BinaryIO:
        return Path(path).open("wb")

    def remove_file(self, path: str) -> None:
        os.unlink(_without_slash(path))  # noqa: PTH108

    def remove_empty_directory(self, path: str) -> None:
        os.rmdir(_without_slash(path))  # noqa: PTH106

    def remove_tree(self, path: str) -> None:
        self.fs.rm(path, recursive=True)

    def write_new(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write a whole file and sync it; FileExistsError if the name is taken."""
        with Path(path).open("xb") as output:
            for chunk in chunks:
                output.write(chunk)
            output.flush()
            os.fsync(output.fileno())

    def make_directory(self, path: str, permission: int | None = None) -> None:
        """Make a directory; one that is there keeps its permissions."""
        if Path(path).is_dir():
            return
        missing = [place for place in (Path(path), *Path(path).parents) if not place.exists()]
        Path(path).mkdir(parents=True, exist_ok=True)
        for made in reversed(missing):
            self._sync(str(made.parent))
        if permission is not None:
            Path(path).chmod(permission)

    def rename(self, source: str, target: str) -> None:
        """One step of the operating system, after a look: it would replace an empty directory."""
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "is there already", target)
        Path(source).rename(target)

    def place(self, source: str, target: str) -> Placement:
        """Link: the one way to a new name that never replaces another file.

        A mount without links gets a rename after a look; another device refuses.
        """
        try:
            os.link(source, target, follow_symlinks=False)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return Placement.REFUSED
            if error.errno not in _NO_LINKS_HERE:
                raise
        else:
            return Placement.LINKED
        if os.path.lexists(target):
            raise FileExistsError(target)
        Path(source).rename(target)
        return Placement.MOVED

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        stat = Path(path).lstat()
        os.utime(path, ns=(stat.st_atime_ns, mtime_ms * 1_000_000), follow_symlinks=False)

    def sync_file(self, path: str) -> None:
        """fsync of a file."""
        self._sync(path)

    def sync_directory(self, path: str) -> None:
        """fsync of a directory."""
        self._sync(path)

    def _sync(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def keeps_attributes(self, directory: str) -> bool:
        """Whether the mount knows extended attributes: asked by reading one."""
        if not hasattr(os, "getxattr"):
            return False
        try:
            os.getxattr(directory, _PROBE_ATTRIBUTE)
        except OSError as error:
            return error.errno in _NO_SUCH_ATTRIBUTE
        return True

    def attribute(self, path: str, name: str) -> bytes | None:
        try:
            return os.getxattr(path, name, follow_symlinks=False)
        except OSError as error:
            if error.errno in _NO_SUCH_ATTRIBUTE:
                return None
            raise

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        os.setxattr(path, name, value, follow_symlinks=False)
