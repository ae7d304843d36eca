"""What both clients of HDFS do alike: names, looks, and removals that never keep quiet."""

from __future__ import annotations

import errno
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, cast

from fsspec import AbstractFileSystem

from changemanager.filesystem.permissions import Permissions, RefusedOwners
from changemanager.filesystem.plain import PlainVolume
from changemanager.filesystem.refusals import refusal
from changemanager.filesystem.volume import Durability, FileSystemCapabilities, Placement

OWNER_ALONE = 0o600
"""Mode of a file whose writer says none; HdfsClientVolume always does."""
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")


class HdfsClient(AbstractFileSystem):  # type: ignore[misc]
    """The half of the file system that needs no protocol of its own; who speaks one gives `info`,
    `ls`, `rename`, `_open`, `_make`, `_delete`, `set_owner` and `set_permission`.

    Paths are taken as Hadoop takes them: `?`, `#` and `%` are letters.
    """

    cachable = False
    umask: int

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        prefix = _PREFIX.match(path)
        text = path[prefix.end() :] if prefix else path
        return text.rstrip("/") or "/"

    @abstractmethod
    def _make(self, path: str, mode: int, *, create_parents: bool) -> None:
        """Make a directory with these very bits; none is there."""

    @abstractmethod
    def _delete(self, path: str, *, is_recursive: bool) -> bool:
        """Whether something was there to be removed."""

    @abstractmethod
    def set_owner(self, path: str, *, owner: str | None = None, group: str | None = None) -> None:
        """Give a file away. PermissionError, of a group that this user is not in, too."""

    @abstractmethod
    def set_permission(self, path: str, mode: int) -> None:
        """Set the nine bits of a file."""

    def exists(self, path: str, **_: Any) -> bool:
        """Whether anything is there; a refusal is an error, not a no."""
        return self._type(path) is not None

    def isdir(self, path: str) -> bool:
        """Whether a directory is there."""
        return self._type(path) == "directory"

    def isfile(self, path: str) -> bool:
        """Whether a file is there."""
        return self._type(path) == "file"

    def _type(self, path: str) -> str | None:
        try:
            return str(self.info(path)["type"])
        except FileNotFoundError:
            return None

    def permissions(self, path: str) -> Permissions:
        """Owner, group and mode of what is there. FileNotFoundError."""
        return _permissions(self.info(path))

    def above(self, path: str) -> Permissions:
        """Those of the lowest directory on the way to a path that is there."""
        place = self._strip_protocol(path)
        while place != "/":
            place = place.rpartition("/")[0] or "/"
            try:
                return self.permissions(place)
            except FileNotFoundError:
                continue
        return self.permissions("/")

    def mkdir(
        self, path: str, create_parents: bool = True, permission: int | None = None, **_: Any
    ) -> None:
        """Make a directory. FileExistsError if one is there already."""
        path = self._strip_protocol(path)
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, "HDFS: is there already", path)
        self._make(path, self._mode(path, permission), create_parents=create_parents)

    def makedirs(
        self,
        path: str,
        exist_ok: bool = False,
        permission: int | None = None,
        limit: int = 0o777,
    ) -> None:
        """Make a directory and those above it. ``permission``: its exact bits; ``limit``: the most
        that it gets."""
        if not exist_ok:
            self.mkdir(path, permission=permission)
        elif not self.isdir(path):
            path = self._strip_protocol(path)
            self._make(path, self._mode(path, permission) & limit, create_parents=True)

    def _mode(self, path: str, permission: int | None) -> int:
        # Hadoop's clients apply the umask; the NameNode takes what it is given.
        return self.above(path).narrow(0o777 & ~self.umask) if permission is None else permission

    def rm_file(self, path: str, **_: Any) -> None:
        """Remove one file; a directory only if it is empty."""
        self.rm(path)

    def rmdir(self, path: str) -> None:
        """Remove one empty directory."""
        self.rm(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Remove files or directories. FileNotFoundError for what is not there."""
        if maxdepth is not None:
            raise ValueError("maxdepth is not offered")
        for name in [path] if isinstance(path, str) else path:
            place = self._strip_protocol(name)
            if place == "/":
                raise PermissionError(errno.EACCES, "the root is never removed", place)
            if not self._delete(place, is_recursive=recursive):
                raise refusal("FileNotFoundException", "nothing was there to be removed", place)


class HdfsClientVolume(PlainVolume):
    """The half of HDFS as a volume that its file system does by itself, whichever client that is;
    who has the other half gives the checksum and the attributes."""

    fs: HdfsClient

    def __init__(self, fs: HdfsClient, durability: Durability) -> None:
        super().__init__(
            fs,
            FileSystemCapabilities(
                has_atomic_rename=True,
                has_directories=True,
                can_set_mtime=True,
                has_native_checksum=True,
                durability=durability,
            ),
        )
        self._refused = RefusedOwners()

    def permissions(self, path: str) -> Permissions | None:
        return self.fs.permissions(path)

    def open_output(self, path: str, like: Permissions | None = None) -> BinaryIO:
        mode = self._first_mode(self.fs.above(path), like)
        return cast(BinaryIO, self.fs.open(path, "wb", permission=mode))

    def write_new(
        self, path: str, chunks: Iterable[bytes], like: Permissions | None = None
    ) -> None:
        """Write a whole file; FileExistsError if the name is taken."""
        above = self.fs.above(path)
        with self.fs.open(path, "xb", permission=self._first_mode(above, like)) as output:
            for chunk in chunks:
                output.write(chunk)
        if like is not None:
            self._keep(path, like, above)

    def _first_mode(self, above: Permissions, like: Permissions | None) -> int:
        """That of a new file, which HDFS gives the group of its directory."""
        if like is None:
            return above.narrow(0o666 & ~self.fs.umask)
        return like.of_copy(above, has_group=like.group == above.group)

    def _keep(self, path: str, like: Permissions, above: Permissions) -> None:
        """Owner and group of another file, and with that group its mode."""
        self._gives("owner", path, like.owner)
        if like.group == above.group:
            return
        has_group = self._gives("group", path, like.group)
        mode = like.of_copy(above, has_group=has_group)
        if has_group:
            self.fs.set_permission(path, mode)
        else:
            self._refused.say(path, like, mode)

    def _gives(self, kind: str, path: str, name: str) -> bool:
        """Whether a file has that owner or group now; what HDFS refused is not tried again."""
        if not name or self._refused.is_known(kind, name):
            return False
        try:
            self.fs.set_owner(path, **{kind: name})
        except PermissionError:
            self._refused.add(kind, name)
            return False
        return True

    def make_directory(
        self, path: str, permission: int | None = None, *, limit: int = 0o777
    ) -> None:
        """One call, by the NameNode."""
        self.fs.makedirs(path, exist_ok=True, permission=permission, limit=limit)

    def place(self, source: str, target: str) -> Placement:
        """Rename; HDFS never renames onto a file that is there."""
        self.fs.rename(source, target)
        return Placement.MOVED

    def rename(self, source: str, target: str) -> None:
        """One step, by the NameNode."""
        self.fs.rename(source, target)

    def remove_tree(self, path: str) -> None:
        """One call, by the NameNode."""
        self.fs.rm(path, recursive=True)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        self.fs.set_times(path, mtime_ms)

    def set_mode(self, path: str, mode: int) -> None:
        self.fs.set_permission(path, mode)


def _permissions(info: Mapping[str, Any]) -> Permissions:
    mode = info["permission"]
    return Permissions(
        owner=str(info["owner"]),
        group=str(info["group"]),
        mode=(mode if isinstance(mode, int) else int(mode, 8)) & 0o777,
    )
