"""The file-system port: what the archive needs, and what a file system can do of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO, Protocol

from changemanager.filesystem.permissions import Permissions


class FileKind(Enum):
    """What a name in a directory is."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True, slots=True)
class FileStatus:
    """One name in a directory. A link is never followed; `mtime_ms` is None where it is unknown."""

    name: str
    kind: FileKind
    size_bytes: int
    mtime_ms: int | None


class Durability(Enum):
    """What it takes until a loss of power cannot undo a change any more."""

    BY_SYNC = "by sync"
    """POSIX: bytes by `sync_file`, and names by `sync_directory` of the directory that has them."""
    BY_CLOSE = "by close"
    """HDFS natively: bytes are forced to the disks (hsync) before `close` returns; a name is in the
    NameNode's edit log when the call that gave it returns (FSEditLog.logSync)."""
    BY_REPLICAS = "by replicas"
    """HDFS over HTTP, which knows no hsync: on `close` the bytes are with every DataNode of the
    pipeline; on their disks only with `dfs.datanode.synconclose`. Names as natively."""
    BY_PUT = "by put"
    """Object stores: an object is there, whole and for good, once its upload was confirmed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileSystemCapabilities:
    """What a file system can do.

    `has_atomic_rename`: a file moves in one step, or not at all, and never over another one.
    `has_directories`: directories exist by themselves (not so in an object store).
    `durability`: when a change is safe from a loss of power.
    """

    has_atomic_rename: bool
    has_directories: bool
    can_set_mtime: bool
    has_native_checksum: bool
    durability: Durability

    @property
    def has_sync(self) -> bool:
        """Whether changes must be synced; elsewhere they are durable when their call returns."""
        return self.durability is Durability.BY_SYNC


class Placement(Enum):
    """How a file came to a new name inside one file system."""

    MOVED = "moved"
    """One step; the old name is gone."""
    LINKED = "linked"
    """Both names are there, with the same bytes on disk."""
    COPIED = "copied"
    """Both names are there, with bytes of their own."""
    REFUSED = "refused"
    """Not possible between these two directories: copy through a stream instead."""


class Volume(Protocol):
    """One file system. Paths are its own (no scheme), names are never patterns.

    Every method raises OSError (FileNotFoundError, FileExistsError, PermissionError …) when the
    file system says no, its streams too. Methods that need a capability are only called where it is
    there.

    What is made is never wider than the directory that it lies in, from its first moment: mode
    0666, or 0777 of directories, without what the umask and that directory's mode take away. Where
    that directory keeps all others out, its group becomes that of the new file or directory if
    this process may give it (on HDFS always). Object stores know none of this.
    """

    @property
    def capabilities(self) -> FileSystemCapabilities:
        """What this file system can do; asked once."""
        ...

    def status(self, path: str) -> FileStatus | None:
        """What is there; None if nothing is."""
        ...

    def children(self, path: str) -> tuple[FileStatus, ...]:
        """The names of one directory, sorted, freshly read. FileNotFoundError if there is none."""
        ...

    def descendants(self, path: str) -> tuple[FileStatus, ...]:
        """Everything below a prefix in one listing, by the path below it; () if nothing is there.

        Only where there are no directories (capability `has_directories`): elsewhere a listing
        would go on over a directory that it cannot read. NotADirectoryError for a file.
        """
        ...

    def real_path(self, path: str) -> str:
        """The path with every symbolic link followed; the path itself where there are none."""
        ...

    def is_link(self, path: str) -> bool:
        """Whether a name is a symbolic link, also one that leads nowhere."""
        ...

    def without_links(self) -> Volume:
        """The same file system for who has followed all links already: `open_input` refuses a path
        with a symbolic link on it, which somebody has put there since. OSError."""
        ...

    def open_input(self, path: str) -> BinaryIO:
        """Read a file from its start; the stream can seek."""
        ...

    def read(self, path: str, length_bytes: int | None = None) -> bytes:
        """The bytes of a small file, or its first ones; fewer if it is shorter."""
        ...

    def permissions(self, path: str) -> Permissions | None:
        """Owner, group and mode of what is there; None where a file system has none.

        FileNotFoundError.
        """
        ...

    def open_output(self, path: str, like: Permissions | None = None) -> BinaryIO:
        """Write a file piece by piece, over one that is there; it is whole once it is closed.

        Its bytes are on the disk by `sync_file`, where that is needed. The directory above must be
        there. `like`: as for :meth:`write_new`.
        """
        ...

    def write_new(
        self, path: str, chunks: Iterable[bytes], like: Permissions | None = None
    ) -> None:
        """Write a whole file and bring it to the disk; a failure may leave a part of it.

        `like`: it is a copy of a file with these permissions. It keeps them as far as this process
        may give them and the directory above lets them through (`Permissions.of_copy`), whatever
        the umask says.
        """
        ...

    def make_directory(
        self, path: str, permission: int | None = None, *, limit: int = 0o777
    ) -> None:
        """Make a directory with those above it; no error if one is there, which stays as it is.

        New names are on the disk when this returns. `permission`: its exact bits, whatever the
        umask says, and the group of the directory above if this process may give it. `limit`: the
        most that it and those above it get.
        """
        ...

    def make_working_directory(self, path: str) -> None:
        """The same for files that are moved away before anyone counts on them: its name, and those
        above it that are made, are brought to the disk by nobody."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name, never over another and never into a directory.

        One step where `has_atomic_rename`; elsewhere files are copied, then removed. The directory
        above `target` must be there. FileExistsError, FileNotFoundError.
        """
        ...

    def place(self, source: str, target: str) -> Placement:
        """Give a file the name `target`, whole or not at all. FileExistsError if it is taken."""
        ...

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file, over one that is there. Only where `has_atomic_rename` is not."""
        ...

    def remove_file(self, path: str) -> None:
        """Remove one file (never a directory)."""
        ...

    def remove_empty_directory(self, path: str) -> None:
        """Remove one directory, which must be empty; nothing where directories do not exist."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory with everything below it, links not followed; or a file.

        FileNotFoundError if nothing is there; a failure may leave a part of it.
        """
        ...

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set a file's modification time; the access time stays (capability `can_set_mtime`)."""
        ...

    def set_mode(self, path: str, mode: int) -> None:
        """Set the nine bits of a file, never of what a link leads to; nothing where a file system
        has none."""
        ...

    def sync_file(self, path: str) -> None:
        """Bring a file's bytes to the disk (capability `has_sync`)."""
        ...

    def sync_directory(self, path: str) -> None:
        """Bring a directory's names to the disk (capability `has_sync`)."""
        ...

    def native_checksum(self, path: str) -> str:
        """The file system's own checksum, in hex (capability `has_native_checksum`)."""
        ...

    def keeps_attributes(self, directory: str) -> bool:
        """Whether files in this directory can have extended attributes (mounts differ)."""
        ...

    def attribute(self, path: str, name: str) -> bytes | None:
        """An extended attribute; None if it is not set (where `keeps_attributes`)."""
        ...

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        """Set an extended attribute, whether it is there or not (where `keeps_attributes`)."""
        ...
