"""Lets hooks hear of dumps that are finished, once each, whatever is killed when.

A dump is finished by a file, its marker, and hooks hear of rows of the database. So it is
announced before it has the marker; whoever is next at dumps of the database settles what was
announced by one that died in between.
"""

from __future__ import annotations

from dataclasses import dataclass

from changemanager.location import Resolver
from changemanager.manifest import ArchiveManifest
from hms_bridge.repl.dump.plan import DumpReport
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.texts import is_there
from hms_bridge.repl.pins import dump_holder


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpNews:
    """Of the dumps of a database below a root, which is given as the resolver writes it. Without a
    manifest nothing happens."""

    manifest: ArchiveManifest | None
    resolve: Resolver
    database: str
    root: str

    def announce(self, report: DumpReport, directory: str) -> None:
        """It is about to get its marker."""
        if self.manifest is None:
            return
        self.manifest.announce(
            dump_holder(self.database, directory),
            {
                "db": self.database,
                "dumpDirectory": directory,
                "dumpKind": report.kind.value,
                "scope": None if report.scope is None else report.scope.text,
                "fromEventId": report.from_event_id,
                "untilEventId": report.to_event_id,
                "fileCount": report.file_count,
            },
        )

    def finish(self, directory: str) -> None:
        """It has its marker."""
        if self.manifest is not None:
            self.manifest.settle_announced(dump_holder(self.database, directory), is_finished=True)

    def settle(self, *, is_alone: bool) -> None:
        """Finish what has its marker and whose process died before it did so. ``is_alone``: nobody
        else makes a dump now, so that one without a marker will never have one."""
        if self.manifest is None:
            return
        for holder in self.manifest.announced(dump_holder(self.database, f"{self.root}/")):
            directory = holder.removeprefix(dump_holder(self.database, ""))
            is_finished = is_there(self.resolve(DumpPaths(directory).finished_dump))
            if is_finished or is_alone:
                self.manifest.settle_announced(holder, is_finished=is_finished)
