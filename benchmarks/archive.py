"""What one more file costs an archive that holds little, and one that holds much."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Ratio, seconds_of
from changemanager.archive import ChangeManager
from changemanager.manifest import (
    ArchiveCause,
    ArchiveContext,
    ArchivedFile,
    ArchiveOrigin,
    ReservedFile,
)
from changemanager.recycle import RecycleKind
from hms_bridge.config.settings import ArchiveSettings, Settings
from hms_bridge.connect import LocalStore, open_local

DIRECTORIES = 40
MUCH = 100_000
_BATCH = 5_000
_VERSION = "_orc_acid_version"
"""Each directory has one, with the same content: one name in the archive, and a place of origin for
each directory."""


def archive_ratios(folder: Path) -> Iterator[Ratio]:
    """Directories of two files each, one of them as in all others; both archives in turn."""
    little, much = _opened(folder / "little"), _opened(folder / "much")
    for side in (little, much):
        side.archive_one(0)  # warms up
    _fill(much.store, much.archive, much.table)
    turns = [
        (little.archive_one(number), much.archive_one(number)) for number in range(1, DIRECTORIES)
    ]
    for side in (little, much):
        side.store.metastore.close()
    of_little, of_much = (statistics.median(times) for times in zip(*turns, strict=True))
    yield Ratio(
        what=f"archiving one more file, {MUCH:,} archived before, vs hardly any",
        ours=f"{of_much * 1000:.2f} ms",
        theirs=f"{of_little * 1000:.2f} ms",
        ratio=of_little / of_much,
        target=0.8,
    )


@dataclass(frozen=True, kw_only=True)
class _Side:
    """An archive and what it is given."""

    store: LocalStore
    archive: ChangeManager
    table: Path

    def archive_one(self, number: int) -> float:
        """A directory of two files; seconds a file."""
        directory = self.table / f"delta_{number:07d}_{number:07d}_0000"
        directory.mkdir(parents=True)
        (directory / "bucket_00000").write_bytes(number.to_bytes(4, "big") * 1000)
        (directory / _VERSION).write_text("2")
        reports = []
        seconds = seconds_of(
            lambda: reports.append(
                self.archive.recycle(
                    str(directory),
                    RecycleKind.MOVE,
                    is_purge=False,
                    root=str(self.table),
                    context=_context(),
                )
            )
        )
        (report,) = reports
        assert len(report.kept) == 2, report
        return seconds / len(report.kept)


def _opened(folder: Path) -> _Side:
    folder.mkdir()
    settings = Settings(
        warehouse=str(folder / "warehouse"), archive=ArchiveSettings(root=str(folder / "cmroot"))
    )
    store = open_local(f"sqlite:///{folder / 'metastore.db'}", settings)
    return _Side(store=store, archive=store.archive(), table=folder / "warehouse" / "t")


def _fill(store: LocalStore, archive: ChangeManager, table: Path) -> None:
    """As if many directories had been archived: each with a file of its own, and that of all."""
    (version,) = (name for name in store.manifest.entries(archive.cmroot.uri) if _VERSION in name)
    for first in range(0, MUCH // 2, _BATCH):
        files = []
        for number in range(first, first + _BATCH):
            directory = f"delta_{number + 1_000_000}_{number + 1_000_000}_0000"
            own = f"bucket_00000_{number:056x}"
            files += [_archived(own, directory, table), _archived(version, directory, table)]
        reserved = [
            ReservedFile(name=file.name, checksum=file.name.rpartition("_")[2], size_bytes=1)
            for file in files
            if file.name != version
        ]
        store.manifest.reserve(archive.cmroot.uri, reserved, store.clock.now_ms())
        store.manifest.record_archived(archive.cmroot.uri, files, store.clock.now_ms())


def _archived(name: str, directory: str, table: Path) -> ArchivedFile:
    origin = ArchiveOrigin(
        uri=f"file:{table}/{directory}/{name.rpartition('_')[0]}",
        directory=directory,
        context=_context(),
        archived_at_ms=1,
    )
    return ArchivedFile(name=name, origin=origin, is_remaining_in_trash=False)


def _context() -> ArchiveContext:
    return ArchiveContext(cause=ArchiveCause.OBSOLETE, database="default", table="t")
