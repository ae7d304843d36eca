"""A small warehouse with a cmroot, a clock that stands still, and faults at any step."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from changemanager.archive import ChangeManager
from changemanager.config import ChangeManagerConfig
from changemanager.delete_protocol import DeleteProtocol
from changemanager.filesystem.volume import Placement, Volume
from changemanager.location import FsspecResolver, Location
from changemanager.manifest import ArchiveCause, ArchiveContext
from changemanager.purge import Purge
from tests.support.archive_manifest import InMemoryManifest

START_MS = 1_700_000_000_000
DAY_MS = 86_400_000


class StandingClock:
    """Tells the time that it is given."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms

    def advance(self, milliseconds: int) -> None:
        self.time_ms += milliseconds


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

    def around(self, label: str, action: Callable[[], Any]) -> Any:
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


class FaultyVolume:
    """A volume that dies where the plan says, and tears what it was writing."""

    def __init__(self, volume: Volume, faults: FaultPlan) -> None:
        self._volume = volume
        self._faults = faults

    def _do(self, label: str, *args: Any) -> Any:
        method = getattr(self._volume, label)
        name = Path(args[0]).name
        return self._faults.around(f"{label} {name}", lambda: method(*args))

    def __getattr__(self, name: str) -> Any:
        """What looks, and what works on staging directories, never dies here."""
        return getattr(self._volume, name)

    def write_new(self, path: str, chunks: Iterable[bytes]) -> None:
        whole = b"".join(chunks)
        with Path(path).open("xb") as output:
            output.write(whole[: len(whole) // 2])
            output.flush()
            self._faults.point("in the middle of write_new")
            output.write(whole[len(whole) // 2 :])
        self._faults.point("after write_new")

    def make_directory(self, path: str, permission: int | None = None) -> None:
        self._do("make_directory", path, permission)

    def rename(self, source: str, target: str) -> None:
        self._do("rename", source, target)

    def place(self, source: str, target: str) -> Placement:
        return self._do("place", source, target)

    def remove_file(self, path: str) -> None:
        self._do("remove_file", path)

    def remove_empty_directory(self, path: str) -> None:
        self._do("remove_empty_directory", path)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        self._do("set_mtime", path, mtime_ms)

    def sync_file(self, path: str) -> None:
        """Nothing: these worlds die by exceptions, not by power cuts."""

    def sync_directory(self, path: str) -> None:
        self._faults.point(f"sync_directory {Path(path).name}")

    def set_attribute(self, path: str, name: str, value: bytes) -> None:
        self._do("set_attribute", path, name, value)


class FaultyManifest:
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
            "add_intent",
            "advance_intent",
        }
    )

    def __init__(self, manifest: InMemoryManifest, faults: FaultPlan) -> None:
        self._manifest = manifest
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._manifest, name)
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
        return self._do("place", source, target)


class ArchiveWorld:
    """A warehouse and a cmroot in one directory, everything that the archive needs around it."""

    def __init__(
        self,
        folder: Path,
        *,
        volume_class: type[FaultyVolume] = FaultyVolume,
        retain_ms: int = 10 * DAY_MS,
        name_length_max: int = 255,
        has_trash: bool = False,
        is_cmroot_elsewhere: bool = False,
    ) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.cmroot = folder / "cmroot"
        self.trash = folder / "trash"
        self.warehouse.mkdir(exist_ok=True)
        self.clock = StandingClock()
        self.store = InMemoryManifest()
        self.volume_class = volume_class
        self.is_cmroot_elsewhere = is_cmroot_elsewhere
        self.config = ChangeManagerConfig(
            cmroot=str(self.cmroot),
            retain_ms=retain_ms,
            name_length_max=name_length_max,
            trash=str(self.trash) if has_trash else None,
            is_elsewhere_allowed=is_cmroot_elsewhere,
        )
        self._tokens = 0
        self.start()

    def start(self, crash_at: int | None = None) -> None:
        """A new process: everything but files and manifest is forgotten."""
        self.faults = FaultPlan()
        self.faults.crash_at = crash_at
        self.manifest = FaultyManifest(self.store, self.faults)
        plain = FsspecResolver()
        wrapped: dict[tuple[int, bool], Volume] = {}

        def resolve(text: str) -> Location:
            found = plain(text)
            is_archive = self.is_cmroot_elsewhere and found.path.startswith(str(self.cmroot))
            key = (id(found.volume), is_archive)
            if key not in wrapped:
                wrapped[key] = self.volume_class(found.volume, self.faults)
            return Location(found.uri, found.path, wrapped[key])

        self.resolve = resolve
        self.archive = ChangeManager(
            self.config, resolve, self.manifest, self.clock, self.new_token
        )
        self.protocol = DeleteProtocol(
            resolve=resolve,
            intents=self.manifest,
            archive=self.archive,
            clock=self.clock,
            new_id=self.new_token,
        )
        self.purge = Purge(self.archive, self.manifest, self.clock)

    def new_token(self) -> str:
        self._tokens += 1
        return f"token{self._tokens:04d}"

    def write(self, relative: str, content: bytes) -> Path:
        """A file of the warehouse."""
        path = self.warehouse / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def archived(self) -> dict[str, bytes]:
        """What the cmroot has, unfinished copies included."""
        if not self.cmroot.is_dir():
            return {}
        return {path.name: path.read_bytes() for path in sorted(self.cmroot.iterdir())}


def context(
    table: str = "t", *, database: str = "db", location: str | None = None, compaction_id: int = 7
) -> ArchiveContext:
    return ArchiveContext(
        cause=ArchiveCause.OBSOLETE,
        location=location,
        database=database,
        table=table,
        compaction_id=compaction_id,
    )
