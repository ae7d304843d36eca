"""The local file system: links, file times, attributes and syncs of the operating system."""

from __future__ import annotations

import errno
import grp
import os
import pwd
from collections.abc import Iterable
from contextlib import suppress
from copy import copy
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_ISGID, S_ISLNK, S_ISREG
from typing import BinaryIO

from fsspec.implementations.local import LocalFileSystem

from changemanager.filesystem.permissions import Permissions, RefusedOwners
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
_IDS_MAX = 1024
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


@lru_cache(maxsize=_IDS_MAX)
def _user_name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


@lru_cache(maxsize=_IDS_MAX)
def _group_name(group_id: int) -> str:
    try:
        return grp.getgrgid(group_id).gr_name
    except KeyError:
        return str(group_id)


def _permissions(stat: os.stat_result) -> Permissions:
    return Permissions(
        owner=_user_name(stat.st_uid), group=_group_name(stat.st_gid), mode=stat.st_mode & 0o777
    )


@lru_cache(maxsize=_IDS_MAX)
def _user_id(name: str) -> int | None:
    """None for a name that nobody has here."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return int(name) if name.isdecimal() else None


@lru_cache(maxsize=_IDS_MAX)
def _group_id(name: str) -> int | None:
    """None for a name that no group has here."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return int(name) if name.isdecimal() else None


def _give_group(place: int | Path, group_id: int) -> bool:
    """Whether the group is that one now."""
    if os.stat(place).st_gid == group_id:  # noqa: PTH116
        return True
    try:
        os.chown(place, -1, group_id)
    except OSError:  # not permitted, not known to the mount, not mapped into a container
        return False
    return True


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
        self._refused = RefusedOwners()

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

    def permissions(self, path: str) -> Permissions | None:
        return _permissions(os.stat(path))  # noqa: PTH116

    def open_output(self, path: str, like: Permissions | None = None) -> BinaryIO:
        return self._create(path, os.O_TRUNC, like)

    def remove_file(self, path: str) -> None:
        os.unlink(_without_slash(path))  # noqa: PTH108

    def remove_empty_directory(self, path: str) -> None:
        os.rmdir(_without_slash(path))  # noqa: PTH106

    def remove_tree(self, path: str) -> None:
        self.fs.rm(path, recursive=True)

    def write_new(
        self, path: str, chunks: Iterable[bytes], like: Permissions | None = None
    ) -> None:
        """Write a whole file and sync it; FileExistsError if the name is taken."""
        with self._create(path, os.O_EXCL, like) as output:
            for chunk in chunks:
                output.write(chunk)
            output.flush()
            os.fsync(output.fileno())

    def _create(self, path: str, how: int, like: Permissions | None) -> BinaryIO:
        """An empty file with its permissions; what is there already keeps its own without
        ``like``."""
        above = os.stat(os.path.dirname(path) or ".")  # noqa: PTH116, PTH120
        directory = _permissions(above)
        mode = directory.narrow(0o666) if like is None else 0o600
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, mode)
        try:
            if like is not None:
                self._keep(file, path, like, above)
            elif directory.keeps_others_out:
                _give_group(file, above.st_gid)
            return os.fdopen(file, "wb")
        except BaseException:
            os.close(file)
            raise

    def _keep(self, file: int, path: str, like: Permissions, above: os.stat_result) -> None:
        """Owner, group and mode of another file, before there is a byte in this one."""
        owner = _user_id(like.owner)
        if owner is not None and owner != os.fstat(file).st_uid:
            with suppress(OSError):
                os.chown(file, owner, -1)
        group = _group_id(like.group)
        has_group = group is not None and _give_group(file, group)
        if not has_group:
            _give_group(file, above.st_gid)
        mode = like.of_copy(_permissions(above), has_group=has_group)
        with suppress(OSError):  # a mount without modes keeps what it was made with
            os.fchmod(file, mode)
        if not has_group:
            self._refused.say(path, like, mode)

    def make_directory(
        self, path: str, permission: int | None = None, *, limit: int = 0o777
    ) -> None:
        """Make a directory; one that is there keeps its permissions."""
        made, place = self._make(path, limit, permission), Path(path)
        if permission is not None and place in made:
            place.chmod(permission | place.stat().st_mode & S_ISGID)
        for directory in made:
            self._sync(str(directory.parent))

    def make_working_directory(self, path: str) -> None:
        self._make(path)

    def _make(self, path: str, limit: int = 0o777, last: int | None = None) -> list[Path]:
        """The directories that were not there, the highest first. ``last``: the limit of the last
        one."""
        place = Path(path)
        if place.is_dir():
            return []
        missing = [level for level in (place, *place.parents) if not level.exists()]
        made = []
        for level in reversed(missing or [place]):
            above = level.parent.stat()
            permissions = _permissions(above)
            mode = permissions.narrow(limit if last is None or level != place else last)
            try:
                level.mkdir(mode)
            except FileExistsError:
                if not level.is_dir():
                    raise
                continue
            if permissions.keeps_others_out or last is not None:
                _give_group(level, above.st_gid)
            made.append(level)
        return made

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

    def set_mode(self, path: str, mode: int) -> None:
        file = os.open(path, _FILE)
        try:
            os.fchmod(file, mode)
        finally:
            os.close(file)

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
