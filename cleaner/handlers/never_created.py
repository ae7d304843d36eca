"""Reason to delete: a CREATE TABLE AS SELECT failed after it had written (Hive: RollbackCTASHook).

Hive's cleaner deletes the whole directory. Here goes only what that write left: the statement may
be tried again meanwhile, whose files lie in the same directory before its table is there
(docs/hive/compaction.md §25).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver, is_below
from changemanager.manifest import ArchiveCause, ArchiveContext
from cleaner.errors import CleanerError
from cleaner.handlers.acid_cleaning import AcidCleaning
from cleaner.plan import CleaningOutcome, CleaningState
from cleaner.planner import CleaningPlanner, current_txns
from cleaner.remover import RemovalReport, Remover
from hms_bridge.acid.names import DirectoryName
from hms_bridge.directories.listing import find_acid_roots
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import LOCATION, Compaction
from hms_bridge.model.counted import counted
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import IF_PURGE

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """The directory of a table that is not there, and the root below which it may be deleted."""

    location: Location
    root: str


class NeverCreatedHandler:
    """Removes what an aborted write left in the directory of a table that was never made."""

    def __init__(
        self,
        metastore: LocalMetastore,
        planner: CleaningPlanner,
        remover: Remover,
        cleaning: AcidCleaning,
        resolve: Resolver,
    ) -> None:
        self._metastore = metastore
        self._planner = planner
        self._remover = remover
        self._cleaning = cleaning
        self._resolve = resolve

    def clean(self, entry: Compaction) -> CleaningOutcome:
        """Remove that write's directories, then the table's own if nothing else is in it.

        Raises CleanerError if something cannot be removed, or somebody else lies in the directory.
        """
        location = self._resolve(entry.properties[LOCATION])
        if entry.txn_id is None or not current_txns(self._metastore).is_aborted(entry.txn_id):
            return self._ended(
                entry, f"{location.uri} stays: nobody knows that its transaction was aborted"
            )
        if self._is_there(entry, location):
            return self._ended(
                entry, f"{entry.target} is there by now, and cleaned like any other table"
            )
        verdict = self._metastore.may_be_deleted(location.uri)
        if verdict.root is None:
            return self._ended(entry, f"{location.uri} stays: {verdict.refusal}")
        if verdict.refusal is not None:
            raise CleanerError(f"{location.uri}: {verdict.refusal}; nothing was deleted")
        place = _Place(location=location, root=verdict.root)
        victims = _written(location, entry.highest_write_id)
        reports = [self._remove(entry, place, victim) for victim in victims]
        is_gone = _remove_if_empty(location)
        self._cleaning.record(entry)
        self._remover.finish(location.uri)
        removed = counted(len(victims), "directory", "directories")
        rest = "it is gone" if is_gone else "what else is in it stays"
        return CleaningOutcome(
            entry=entry,
            state=CleaningState.CLEANED,
            message=f"{removed} of an aborted write removed from {location.uri}; {rest}",
            victim_count=sum(report.victim_count for report in reports),
            archived_count=sum(report.archived_count for report in reports),
            deleted_count=sum(report.deleted_count for report in reports),
            freed_bytes=sum(report.freed_bytes for report in reports),
        )

    def _is_there(self, entry: Compaction, location: Location) -> bool:
        try:
            target = self._planner.target(entry)
        except NoSuchObjectError:
            return False
        return is_below(target.location, location.uri) or is_below(location.uri, target.location)

    def _remove(self, entry: Compaction, place: _Place, victim: str) -> RemovalReport:
        report = self._remover.remove_path(
            victim,
            root=place.root,
            context=ArchiveContext(
                cause=ArchiveCause.DROP_TABLE,
                location=place.location.uri,
                database=entry.target.database,
                table=entry.target.table,
                partition=entry.target.partition,
                txn_id=entry.txn_id,
                compaction_id=entry.id or None,
            ),
            is_archived=self._planner.is_replication_source(entry.target.database),
            is_purge=entry.properties.get(IF_PURGE, "").lower() == "true",
        )
        if report.failures:
            raise CleanerError("; ".join(reason for _, reason in report.failures))
        return report

    def _ended(self, entry: Compaction, message: str) -> CleaningOutcome:
        _LOG.warning("%s", message)
        self._cleaning.record(entry)
        return CleaningOutcome(entry=entry, state=CleaningState.CLEANED, message=message)


def _written(location: Location, write_id: WriteId | None) -> Sequence[str]:
    """The bases and deltas of one write alone, in a table's directory or its partitions'."""
    found = []
    for path in find_acid_roots(location.volume, location.path):
        root = location.child(path.removeprefix(location.path).strip("/"))
        for name in (status.name for status in root.volume.children(root.path)):
            parsed = DirectoryName.parse(name)
            if parsed is not None and parsed.min_write_id == parsed.max_write_id == write_id:
                found.append(root.child(name).uri)
    return found


def _remove_if_empty(directory: Location) -> bool:
    """Whether it is gone, with what is empty below it. One call a directory, which fails where
    somebody has just put something in."""
    volume = directory.volume
    if not volume.capabilities.has_directories:
        return not volume.descendants(directory.path)
    try:
        children = volume.children(directory.path)
    except FileNotFoundError:
        return True
    is_empty = True
    for child in children:
        is_directory = child.kind is FileKind.DIRECTORY
        is_empty &= is_directory and _remove_if_empty(directory.child(child.name))
    if is_empty:
        volume.remove_empty_directory(directory.path)
    return is_empty
