"""A disk in memory with two faces: what processes see, and what a power cut leaves.

Bytes reach the platter by `sync_file`, names by `sync_directory`, as POSIX promises and no more. A
power cut keeps of what was not synced whatever the given dice say: a directory is found with its
old names or its new ones, a file with its old bytes, its new ones, or none.
"""

from __future__ import annotations

import errno
import io
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from changemanager.filesystem.local import LocalVolume
from changemanager.filesystem.permissions import Permissions
from changemanager.filesystem.volume import FileKind, FileStatus, Placement


@dataclass(eq=False, slots=True)
class File:
    """One file; `durable` is what a power cut cannot take (None: nothing of it)."""

    data: bytes
    mtime_ms: int
    durable: bytes | None = None
    attributes: dict[str, bytes] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Directory:
    """Names now, and the names that a power cut cannot take."""

    names: dict[str, File | Directory] = field(default_factory=dict)
    durable: dict[str, File | Directory] = field(default_factory=dict)
    mtime_ms: int = 0


Point = Callable[[str, str, bool], None]
"""Told of each operation before it: its name, its path, whether it changes anything.
May raise: an OSError is the storage's, another one kills who asked."""


class SimulatedDisk:
    """The tree, and the operations on it that processes can be cut at."""

    def __init__(self, now_ms: Callable[[], int], point: Point) -> None:
        self.root = Directory()
        self.version = 0
        self._now_ms = now_ms
        self._point = point
        self.on_remove: Callable[[str, File], None] = lambda _path, _file: None

    # -- looking

    def find(self, path: str) -> File | Directory | None:
        """What is at a path, without being noticed."""
        node: File | Directory = self.root
        for name in _levels(path):
            if not isinstance(node, Directory):
                return None
            below = node.names.get(name)
            if below is None:
                return None
            node = below
        return node

    def has_name(self, path: str, part: str) -> bool:
        """Whether a directory has a name with a part in it, without being noticed."""
        node = self.find(path)
        return isinstance(node, Directory) and any(part in name for name in node.names)

    def files(self, path: str) -> Iterator[tuple[str, File]]:
        """Every file below a path with its path below it, without being noticed."""
        node = self.find(path)
        if isinstance(node, Directory):
            yield from _files(node, "")

    def need(self, path: str) -> File | Directory:
        """The same. Raises FileNotFoundError."""
        node = self.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
        return node

    def directory(self, path: str) -> Directory:
        """Raises FileNotFoundError, NotADirectoryError."""
        node = self.need(path)
        if not isinstance(node, Directory):
            raise NotADirectoryError(errno.ENOTDIR, "is a file", path)
        return node

    def file(self, path: str) -> File:
        """Raises FileNotFoundError, IsADirectoryError."""
        node = self.need(path)
        if not isinstance(node, File):
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        return node

    @contextmanager
    def operation(self, name: str, path: str, *, changes: bool) -> Iterator[None]:
        """Around each operation. Who is cut before it has done nothing of it; the moment after it
        is that before the next one."""
        self._point(name, path, changes)
        yield
        if changes:
            self.version += 1

    # -- changing

    def put(self, path: str, data: bytes, *, is_new: bool) -> None:
        """Write a file; the name above must be there."""
        parent, name = self._parent(path)
        there = parent.names.get(name)
        if there is not None and (is_new or isinstance(there, Directory)):
            raise FileExistsError(errno.EEXIST, "is there already", path)
        if isinstance(there, File):
            there.data, there.mtime_ms = data, self._now_ms()
        else:
            parent.names[name] = File(data, self._now_ms())
            parent.mtime_ms = self._now_ms()

    def make_directories(self, path: str) -> None:
        """With all above it; no error for one that is there."""
        node = self.root
        for name in _levels(path):
            below = node.names.setdefault(name, Directory(mtime_ms=self._now_ms()))
            if not isinstance(below, Directory):
                raise FileExistsError(errno.EEXIST, "a file is there", path)
            node = below

    def move(self, source: str, target: str) -> None:
        """One step, never over another."""
        if self.find(target) is not None:
            raise FileExistsError(errno.EEXIST, "is there already", target)
        old, old_name = self._parent(source)
        new, new_name = self._parent(target)
        if old_name not in old.names:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", source)
        new.names[new_name] = old.names.pop(old_name)

    def link(self, source: str, target: str) -> None:
        """A second name of one file."""
        if self.find(target) is not None:
            raise FileExistsError(errno.EEXIST, "is there already", target)
        file = self.file(source)
        parent, name = self._parent(target)
        parent.names[name] = file

    def remove(self, path: str) -> None:
        """One file."""
        file = self.file(path)
        self.on_remove(path, file)
        parent, name = self._parent(path)
        del parent.names[name]

    def remove_directory(self, path: str) -> None:
        """One empty directory."""
        if self.directory(path).names:
            raise OSError(errno.ENOTEMPTY, "directory is not empty", path)
        parent, name = self._parent(path)
        del parent.names[name]

    def _parent(self, path: str) -> tuple[Directory, str]:
        *above, name = _levels(path)
        return self.directory("/".join(above)), name

    # -- power

    def sync_file(self, path: str) -> None:
        """The bytes of a file cannot be taken by a power cut any more."""
        file = self.file(path)
        file.durable = file.data

    def sync_directory(self, path: str) -> None:
        """The names in a directory cannot be taken by a power cut any more."""
        directory = self.directory(path)
        directory.durable = dict(directory.names)

    def settle_names_above(self, path: str) -> None:
        """The name of a directory, and of all above it. One that another directory had before takes
        the names beside it along: no file system forgets where that one has gone to."""
        node = self.root
        for level in _levels(path):
            below = node.names[level]
            if node.durable.get(level, below) is not below:
                node.durable = dict(node.names)
            node.durable[level] = below
            if not isinstance(below, Directory):
                return
            node = below

    def settle(self, path: str) -> None:
        """A directory and everything below it, as a file system does it that needs no syncs."""
        self.settle_names_above(path)
        _sync(self.directory(path))

    def sync_all(self) -> None:
        """As a long time without a power cut does."""
        _sync(self.root)

    def cut_power(self, dice: random.Random) -> int:
        """What was not synced is lost, or half of it; how many things were lost."""
        self.version += 1
        return _cut(self.root, dice)


def _levels(path: str) -> list[str]:
    return [level for level in path.split("/") if level]


def _files(directory: Directory, prefix: str) -> Iterator[tuple[str, File]]:
    for name, node in directory.names.items():
        if isinstance(node, File):
            yield prefix + name, node
        else:
            yield from _files(node, f"{prefix}{name}/")


def _sync(directory: Directory) -> None:
    directory.durable = dict(directory.names)
    for node in directory.names.values():
        if isinstance(node, Directory):
            _sync(node)
        else:
            node.durable = node.data


def _cut(directory: Directory, dice: random.Random) -> int:
    lost = 0
    if directory.names != directory.durable and dice.random() < 0.7:
        directory.names = dict(directory.durable)
        lost += 1
    directory.durable = dict(directory.names)
    for node in directory.names.values():
        if isinstance(node, Directory):
            lost += _cut(node, dice)
        elif node.durable != node.data:
            if dice.random() < 0.7:
                node.data = node.durable or b""
                lost += 1
            node.durable = node.data
    return lost


class _Output(io.BytesIO):
    """A file being written: half of it may be there when its writer dies."""

    def __init__(self, disk: SimulatedDisk, path: str) -> None:
        super().__init__()
        self._disk, self._path, self._is_done = disk, path, False

    def close(self) -> None:
        if not self._is_done and not self.closed:
            self._is_done = True
            data = self.getvalue()
            super().close()
            write_in_halves(self._disk, self._path, data)
        super().close()


def write_in_halves(disk: SimulatedDisk, path: str, data: bytes) -> None:
    """Whoever is cut between the halves leaves the first."""
    with disk.operation("write half", path, changes=True):
        disk.put(path, data[: len(data) // 2], is_new=False)
    with disk.operation("write", path, changes=True):
        disk.put(path, data, is_new=False)


class SimulatedVolume:
    """The disk as the file port shows it: links, renames in one step, syncs."""

    capabilities = LocalVolume().capabilities

    def __init__(self, disk: SimulatedDisk) -> None:
        self._disk = disk

    def status(self, path: str) -> FileStatus | None:
        node = self._disk.find(path)
        return None if node is None else _status(path, node)

    def children(self, path: str) -> tuple[FileStatus, ...]:
        with self._disk.operation("ls", path, changes=False):
            node = self._disk.need(path)
            names = node.names if isinstance(node, Directory) else {}
            return tuple(_status(name, below) for name, below in sorted(names.items()))

    def descendants(self, path: str) -> tuple[FileStatus, ...]:
        raise NotImplementedError("there are directories")

    def real_path(self, path: str) -> str:
        return path

    def is_link(self, path: str) -> bool:
        return False

    def without_links(self) -> SimulatedVolume:
        return self

    def open_input(self, path: str) -> BinaryIO:
        with self._disk.operation("open", path, changes=False):
            return io.BytesIO(self._disk.file(path).data)

    def read(self, path: str, length_bytes: int | None = None) -> bytes:
        return self.open_input(path).read(length_bytes)

    def permissions(self, path: str) -> Permissions | None:
        del path
        return None

    def open_output(self, path: str, like: Permissions | None = None) -> BinaryIO:
        del like
        with self._disk.operation("create", path, changes=True):
            self._disk.put(path, b"", is_new=False)
        return _Output(self._disk, path)

    def write_new(
        self, path: str, chunks: Iterable[bytes], like: Permissions | None = None
    ) -> None:
        del like
        data = b"".join(chunks)
        with self._disk.operation("create", path, changes=True):
            self._disk.put(path, b"", is_new=True)
        write_in_halves(self._disk, path, data)
        self.sync_file(path)

    def make_directory(
        self, path: str, permission: int | None = None, *, limit: int = 0o777
    ) -> None:
        del permission, limit
        if not isinstance(self._disk.find(path), Directory):
            self.make_working_directory(path)
            self._disk.settle_names_above(path)

    def make_working_directory(self, path: str) -> None:
        with self._disk.operation("mkdir", path, changes=True):
            self._disk.make_directories(path)

    def copy_file(self, source: str, target: str) -> None:
        raise NotImplementedError("files are renamed")

    def remove_file(self, path: str) -> None:
        with self._disk.operation("rm", path, changes=True):
            self._disk.remove(path)

    def remove_empty_directory(self, path: str) -> None:
        with self._disk.operation("rmdir", path, changes=True):
            self._disk.remove_directory(path)

    def remove_tree(self, path: str) -> None:
        if isinstance(self._disk.need(path), File):
            self.remove_file(path)
            return
        for name in list(self._disk.directory(path).names):
            self.remove_tree(f"{path}/{name}")
        self.remove_empty_directory(path)

    def native_checksum(self, path: str) -> str:
        raise NotImplementedError("there is none")

    def rename(self, source: str, target: str) -> None:
        with self._disk.operation("rename", target, changes=True):
            self._disk.move(source, target)

    def place(self, source: str, target: str) -> Placement:
        with self._disk.operation("link", target, changes=True):
            self._disk.link(source, target)
        return Placement.LINKED

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        with self._disk.operation("utime", path, changes=True):
            self._disk.file(path).mtime_ms = mtime_ms

    def set_mode(self, path: str, mode: int) -> None:
        raise NotImplementedError("no file has a mode")

    def sync_file(self, path: str) -> None:
        with self._disk.operation("fsync", path, changes=True):
            self._disk.sync_file(path)

    def sync_directory(self, path: str) -> None:
        with self._disk.operation("fsync directory", path, changes=True):
            self._disk.sync_directory(path)

    def keeps_attributes(self, directory: str) -> bool:
        del directory
        return True

    def attribute(self, path: str, name: str) -> bytes | None:
        return self._disk.file(path).attributes.get(name)

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        with self._disk.operation("setxattr", path, changes=True):
            self._disk.file(path).attributes[name] = value


def _status(path: str, node: File | Directory) -> FileStatus:
    is_file = isinstance(node, File)
    return FileStatus(
        name=path.rpartition("/")[2],
        kind=FileKind.FILE if is_file else FileKind.DIRECTORY,
        size_bytes=len(node.data) if isinstance(node, File) else 0,
        mtime_ms=node.mtime_ms,
    )
