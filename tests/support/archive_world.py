"""A small warehouse with a cmroot, a clock that stands still, and faults at any step."""

from __future__ import annotations

from pathlib import Path

from changemanager.archive import ChangeManager
from changemanager.config import ChangeManagerConfig, PinBudget
from changemanager.delete_protocol import DeleteProtocol
from changemanager.location import FsspecResolver, Location
from changemanager.manifest import ArchiveCause, ArchiveContext
from changemanager.purge import Purge
from tests.support.archive_manifest import InMemoryManifest
from tests.support.faults import FaultPlan, FaultyManifest, FaultyVolume, faulty
from tests.support.simulated_clock import DAY_MS, SimulatedClock


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
        budget: PinBudget | None = None,
    ) -> None:
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self.cmroot = folder / "cmroot"
        self.trash = folder / "trash"
        self.warehouse.mkdir(exist_ok=True)
        self.clock = SimulatedClock()
        self.store = InMemoryManifest()
        self.clock.watch(self._note_time)
        self.volume_class = volume_class
        self.is_cmroot_elsewhere = is_cmroot_elsewhere
        self.config = ChangeManagerConfig(
            cmroot=str(self.cmroot),
            retain_ms=retain_ms,
            name_length_max=name_length_max,
            trash=str(self.trash) if has_trash else None,
            is_elsewhere_allowed=is_cmroot_elsewhere,
            budget=budget or PinBudget(),
        )
        self._tokens = 0
        self.start()

    def _note_time(self) -> None:
        self.store.note_time(self.clock.now_ms())

    def start(self, crash_at: int | None = None) -> None:
        """A new process: everything but files and manifest is forgotten."""
        self.faults = FaultPlan()
        self.faults.crash_at = crash_at
        self.manifest = FaultyManifest(self.store, self.faults)
        plain = FsspecResolver()
        here, elsewhere = (faulty(plain, self.faults, kind=self.volume_class) for _ in range(2))

        def resolve(text: str) -> Location:
            is_archive = plain(text).path.startswith(str(self.cmroot))
            return (elsewhere if is_archive and self.is_cmroot_elsewhere else here)(text)

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
