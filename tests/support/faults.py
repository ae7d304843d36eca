"""Processes that die at any step: of file systems, of the manifest, of the metastore."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from changemanager.filesystem.volume import Placement, Volume
from changemanager.location import Location, Resolver
from changemanager.manifest import ArchiveManifest
from tests.support.passing import Passing

T = TypeVar("T")


class CrashError(BaseException):
    """The process dies here. No `except Exception` and no clean-up of the code may catch it."""


class FaultPlan:
    """Counts the steps that change something, and dies before or after one of them."""

    def __init__(self) -> None:
        self.count = 0
        self.crash_at: int | None = None
        self.crash_label: str | None = None
        self.is_dead = False
        self.labels: list[str] = []
        self._lock = threading.Lock()

    def begin(self, crash_at: int | None = None) -> None:
        """Another process, which dies there."""
        self.count, self.crash_at, self.is_dead, self.labels = 0, crash_at, False, []

    def around(self, label: str, action: Callable[[], T]) -> T:
        """Two points for each step: just before it, and just after it."""
        self.point(f"before {label}")
        result = action()
        self.point(f"after {label}")
        return result

    def point(self, label: str) -> None:
        with self._lock:
            if self.is_dead:
                raise CrashError("the process is dead")
            self.count += 1
            self.labels.append(label)
            if self.count == self.crash_at or label == self.crash_label:
                self.is_dead = True
                raise CrashError(label)


class FaultyVolume(Passing):
    """A volume that dies where the plan says, and tears what it was writing.

    What looks, and what works on staging directories, never dies here.
    """

    def __init__(self, volume: Volume, faults: FaultPlan) -> None:
        super().__init__(volume)
        self._faults = faults

    def _do(self, label: str, *args: Any, **given: Any) -> Any:
        method = getattr(self.inner, label)
        name = Path(args[0]).name
        return self._faults.around(f"{label} {name}", lambda: method(*args, **given))

    def write_new(self, path: str, chunks: Iterable[bytes], like: Any = None) -> None:
        whole = b"".join(chunks)
        with Path(path).open("xb") as output:
            output.write(whole[: len(whole) // 2])
            output.flush()
            self._faults.point("in the middle of write_new")
            output.write(whole[len(whole) // 2 :])
        self._faults.point("after write_new")

    def make_directory(self, path: str, permission: int | None = None, **given: Any) -> None:
        self._do("make_directory", path, permission, **given)

    def rename(self, source: str, target: str) -> None:
        self._do("rename", source, target)

    def place(self, source: str, target: str) -> Placement:
        placed: Placement = self._do("place", source, target)
        return placed

    def remove_file(self, path: str) -> None:
        self._do("remove_file", path)

    def remove_empty_directory(self, path: str) -> None:
        self._do("remove_empty_directory", path)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        self._do("set_mtime", path, mtime_ms)

    def set_mode(self, path: str, mode: int) -> None:
        self._do("set_mode", path, mode)

    def sync_file(self, path: str) -> None:
        """Nothing: these worlds die by exceptions, not by power cuts."""

    def sync_directory(self, path: str) -> None:
        self._faults.point(f"sync_directory {Path(path).name}")

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        self._do("set_attribute", path, name, value)


class FaultyManifest(Passing):
    """A manifest that dies before or after each of its changes."""

    _CHANGES = frozenset(
        {
            "reserve",
            "record_archived",
            "withdraw",
            "claim_purge",
            "release_purge",
            "record_purged",
            "holds_purge",
            "give_up",
            "add_intents",
            "advance_intents",
            "announce",
            "settle_announced",
        }
    )

    def __init__(self, manifest: ArchiveManifest, faults: FaultPlan) -> None:
        super().__init__(manifest)
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)
        if name not in self._CHANGES:
            return method
        return lambda *args, **kwargs: self._faults.around(name, lambda: method(*args, **kwargs))


class LinklessVolume(FaultyVolume):
    """As HDFS: a file moves in one step, and there are no hard links."""

    def place(self, source: str, target: str) -> Placement:
        if os.path.lexists(target):
            raise FileExistsError(target)

        def rename() -> Placement:
            Path(source).rename(target)
            return Placement.MOVED

        return self._faults.around(f"rename {Path(source).name}", rename)


class FarVolume(FaultyVolume):
    """A place to which nothing can be renamed or linked except from a directory's own files."""

    def place(self, source: str, target: str) -> Placement:
        if Path(source).parent != Path(target).parent:
            return Placement.REFUSED
        placed: Placement = self._do("place", source, target)
        return placed


class FaultyMetastore(Passing):
    """A metastore that dies before or after each call that changes something."""

    _READS = ("get_", "show_", "find_")

    def __init__(self, metastore: object, faults: FaultPlan) -> None:
        super().__init__(metastore)
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)
        if name.startswith(self._READS) or not callable(method):
            return method
        return lambda *args, **kwargs: self._faults.around(name, lambda: method(*args, **kwargs))


class Dying(Passing):
    """The caller is killed by a CrashError after so many calls whose names begin so."""

    def __init__(self, inner: Any, calls: int, *names: str) -> None:
        super().__init__(inner)
        self._left = calls
        self._names = names

    def __getattr__(self, name: str) -> Any:
        method = super().__getattr__(name)
        if not name.startswith(self._names):
            return method

        def call(*arguments: Any, **named: Any) -> Any:
            answer = method(*arguments, **named)
            self._left -= 1
            if not self._left:
                raise CrashError(name)
            return answer

        return call


def faulty(
    resolve: Resolver,
    faults: FaultPlan,
    is_watched: Callable[[Location], bool] = lambda place: True,
    *,
    kind: type[FaultyVolume] = FaultyVolume,
) -> Resolver:
    """A resolver whose file systems die where the plan says; places that are not watched do not."""
    volumes: dict[int, FaultyVolume] = {}

    def find(text: str) -> Location:
        found = resolve(text)
        if not is_watched(found):
            return found
        volume = volumes.setdefault(id(found.volume), kind(found.volume, faults))
        return Location(found.uri, found.path, volume)

    return find
