"""A disk that loses what was not synced: real files below one directory, and a power cut.

POSIX promises a file's bytes after fsync of the file, and a name after fsync of its directory; the
disk here keeps exactly that. What else survives a real cut is left to the writer of the disk, so
there is more than one way to lose power (`Loss`). Operations go to the real file system; `os.fsync`
and what changes names are watched, and each is a place where the power may fail.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from tests.support.passing import Passing

_WATCHED = ("rename", "replace", "link", "remove", "unlink", "rmdir", "mkdir")


class PowerFailure(BaseException):
    """The machine stops here. No clean-up of the code may catch it, and nothing works after it."""


class Loss(Enum):
    """What becomes of names that were not synced; bytes that were not are gone in each."""

    NAMES_GO_BACK = "new names are gone, removed ones are there again"
    NAMES_STAY = "all names are as they were last, with files that may be empty"
    NAMES_GO = "new names are gone, and so are removed ones"


Names = dict[int, dict[str, int]]
"""Of each directory (inode): name → inode."""


class PowerLossDisk:
    """Everything below `root`; `crash_at`: the power fails before this operation (from 1)."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.count = 0
        self.crash_at: int | None = None
        self.labels: list[str] = []
        self.is_dead = False
        self._held: dict[int, int] = {}
        self._bytes: dict[int, bytes] = {}
        self._synced: Names = {}
        self._last: Names = {}
        self._mtimes: dict[int, int] = {}
        self._fsync = os.fsync
        patch.setattr(os, "fsync", self._on_fsync)
        for name in _WATCHED:
            patch.setattr(os, name, self._watched(name, getattr(os, name)))
        self.settle()

    def settle(self) -> None:
        """Everything that is there now is on the disk: the machine has been up for a while."""
        self.is_dead, self.crash_at, self.count, self.labels = False, None, 0, []
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held, self._bytes, self._mtimes = {}, {}, {}
        self._synced = self._names_now()
        for inode, descriptor in self._held.items():
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                self._keep_bytes(inode, descriptor)
        self._last = self._synced

    def cut(self) -> None:
        """The power fails now."""
        if not self.is_dead:
            self.is_dead = True
            self._last = self._names_now()

    def come_back(self, loss: Loss) -> None:
        """Put below the root what a reader finds after the cut; may be asked for each loss."""
        self.cut()
        self.is_dead = False
        crash_at, self.crash_at = self.crash_at, None
        built = self.root.with_name(f"{self.root.name}.after")
        shutil.rmtree(built, ignore_errors=True)
        built.mkdir()
        self._build(built, self._root_inode, loss, {})
        for entry in list(self.root.iterdir()):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for entry in list(built.iterdir()):
            entry.rename(self.root / entry.name)
        built.rmdir()
        self.crash_at, self.is_dead = crash_at, True

    # -- what is watched

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **named: Any) -> Any:
            if isinstance(path, str | os.PathLike) and self._is_below(os.fspath(path)):
                self.reach(f"{name} {Path(path).name}")
            return real(path, *arguments, **named)

        return call

    def reach(self, label: str) -> None:
        """A step where the power may fail."""
        if self.is_dead:
            raise PowerFailure("there is no power")
        self.count += 1
        self.labels.append(label)
        if self.count == self.crash_at:
            self.cut()
            raise PowerFailure(f"before {label}")

    def _on_fsync(self, descriptor: int) -> None:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if not self._is_below(path):
            return self._fsync(descriptor)
        self.reach(f"fsync {Path(path).name}")
        inode = os.fstat(descriptor).st_ino
        self._hold(path, inode)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self._synced[inode] = self._names_in(path)
        else:
            self._keep_bytes(inode, self._held[inode])
        return None

    def _is_below(self, path: str) -> bool:
        return path == str(self.root) or path.startswith(f"{self.root}/")

    # -- what is known

    def _hold(self, path: str, inode: int) -> None:
        """An inode that is open is nobody else's afterwards, whatever is removed."""
        if inode not in self._held:
            self._held[inode] = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)

    def _inode(self, path: Path) -> int:
        return path.lstat().st_ino

    @property
    def _root_inode(self) -> int:
        return self._inode(self.root)

    def _names_in(self, path: str) -> dict[str, int]:
        found = {}
        with os.scandir(path) as entries:
            for entry in entries:
                found[entry.name] = entry.inode()
                self._hold(entry.path, entry.inode())
        return found

    def _names_now(self) -> Names:
        found: Names = {}
        for path, _, _ in os.walk(self.root):
            inode = self._inode(Path(path))
            self._hold(path, inode)
            found[inode] = self._names_in(path)
        return found

    def _keep_bytes(self, inode: int, descriptor: int) -> None:
        status = os.fstat(descriptor)
        self._bytes[inode] = os.pread(descriptor, status.st_size, 0)
        self._mtimes[inode] = status.st_mtime_ns

    # -- after the cut

    def _names_after(self, directory: int, loss: Loss) -> dict[str, int]:
        synced, last = self._synced.get(directory, {}), self._last.get(directory, {})
        if loss is Loss.NAMES_STAY:
            return last
        if loss is Loss.NAMES_GO_BACK:
            return synced
        return {name: inode for name, inode in synced.items() if last.get(name) == inode}

    def _build(self, into: Path, directory: int, loss: Loss, placed: dict[int, Path]) -> None:
        for name, inode in self._names_after(directory, loss).items():
            path = into / name
            if stat.S_ISDIR(os.fstat(self._held[inode]).st_mode):
                path.mkdir()
                self._build(path, inode, loss, placed)
            elif inode in placed:
                path.hardlink_to(placed[inode])
            else:
                path.write_bytes(self._bytes.get(inode, b""))
                if inode in self._mtimes:
                    os.utime(path, ns=(self._mtimes[inode],) * 2)
                placed[inode] = path


class PoweredMetastore(Passing):
    """A metastore that a machine without power cannot call; each call may be where it fails."""

    def __init__(self, inner: Any, disk: PowerLossDisk) -> None:
        super().__init__(inner)
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self._disk.reach(name)
            return found(*arguments, **named)

        return call
