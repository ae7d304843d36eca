"""A metastore with files whose process can die at any step of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from changemanager.location import FsspecResolver, Resolver
from hms_bridge.config.settings import ArchiveSettings
from hms_bridge.model.catalog import Database
from hms_bridge.service.directories import Directories
from hms_bridge.service.hooks import HookDispatcher
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.task_leases import CLAIM_MS
from tests.conformance.objects import acid_table, events_after
from tests.support.databases import sqlite_file
from tests.support.faults import CrashError, FaultPlan, faulty
from tests.support.world import World

SOURCE = {"repl.source.for": "p1"}
FILES = {"delta_1_1/bucket_00000": b"one", "delta_2_2/bucket_00000": b"two", "x": b"three"}


class DyingDirectories(Directories):
    """Dies before or after each change."""

    def __init__(self, resolve: Resolver, faults: FaultPlan) -> None:
        super().__init__(resolve)
        self._faults = faults

    def make_all(self, uris: Sequence[str], begun: list[str]) -> None:
        self._faults.around("make", lambda: super(DyingDirectories, self).make_all(uris, begun))

    def move(
        self, source: str, target: str, token: str, proceed: Callable[[], None] = lambda: None
    ) -> None:
        self._faults.around(
            "move", lambda: super(DyingDirectories, self).move(source, target, token, proceed)
        )

    def end_move(self, place: str, token: str) -> None:
        self._faults.around(
            "end move", lambda: super(DyingDirectories, self).end_move(place, token)
        )

    def remove_empty(self, uri: str) -> bool:
        return self._faults.around(
            "remove_empty", lambda: super(DyingDirectories, self).remove_empty(uri)
        )


class DyingDispatcher(HookDispatcher):
    """The process dies right after a commit that logs an event of a kind, before anything else is
    done."""

    def __init__(self, metastore: MetastoreService, kind: str) -> None:
        super().__init__([], new_id=lambda: "nobody", kept_by="")
        self._metastore = metastore
        self._kind = kind
        self._last = metastore.get_current_event_id()

    @property
    def has_hooks(self) -> bool:
        """It is told of every commit."""
        return True

    def wake(self) -> None:
        events = events_after(self._metastore, self._last)
        if self._kind in {event.type for event in events}:
            raise CrashError(self._kind)


class FilesWorld(World):
    """A metastore with its files, whose process may die; :meth:`restart` is a new process."""

    def __init__(self, folder: Path, *, is_archive_enabled: bool = True) -> None:
        super().__init__(
            folder,
            url=sqlite_file(folder),
            has_database=False,
            deletion_roots=(str(folder / "elsewhere"),),
            archive=ArchiveSettings(is_enabled=is_archive_enabled, root=str(folder / "cmroot")),
        )
        self.restart()

    def restart(
        self,
        *,
        crash_at: int | None = None,
        crash_label: str | None = None,
        die_after: str | None = None,
    ) -> MetastoreService:
        self.faults = FaultPlan()
        resolve = faulty(FsspecResolver(), self.faults)
        self.start(resolve, DyingDirectories(resolve, self.faults))
        if die_after:
            self.metastore._transactions._hooks = DyingDispatcher(self.metastore, die_after)
        self.faults.count = 0
        self.faults.crash_at = crash_at
        self.faults.crash_label = crash_label
        return self.metastore

    def recover(self) -> None:
        """A new process, after every lease of the old one has run out, keeps house."""
        self.clock.advance_ms(CLAIM_MS + 1)
        self.restart().run_housekeeping()

    def create_database(self, name: str = "db", **given: Any) -> None:
        self.metastore.create_database(Database(name=name, **given))

    def table(self, name: str = "t", **given: object) -> Path:
        """A table with files; its directory."""
        self.metastore.create_table(acid_table("db", name, **given))
        return self.fill(self.path(name))

    def fill(self, place: Path) -> Path:
        for relative, content in FILES.items():
            (place / relative).parent.mkdir(parents=True, exist_ok=True)
            (place / relative).write_bytes(content)
        return place
