"""Reason to delete: a CREATE TABLE AS SELECT failed after it had written (Hive: RollbackCTASHook).

Hive's cleaner deletes the whole directory; here goes only what that write left.
"""

from __future__ import annotations

import logging

from changemanager.location import Location, Resolver, is_below
from cleaner.errors import CleanerError
from cleaner.handlers.acid_cleaning import AcidCleaning
from cleaner.leftovers import Leftovers
from cleaner.plan import CleaningOutcome, CleaningState
from cleaner.planner import CleaningPlanner
from cleaner.remover import Remover
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import LOCATION, Compaction
from hms_bridge.model.counted import counted

_LOG = logging.getLogger(__name__)


class NeverCreatedHandler:
    """Removes what an aborted write left in the directory of a table that was never made."""

    def __init__(
        self,
        metastore: LocalMetastore,
        planner: CleaningPlanner,
        remover: Remover,
        cleaning: AcidCleaning,
        leftovers: Leftovers,
        resolve: Resolver,
    ) -> None:
        self._metastore = metastore
        self._planner = planner
        self._remover = remover
        self._cleaning = cleaning
        self._leftovers = leftovers
        self._resolve = resolve

    def clean(self, entry: Compaction) -> CleaningOutcome:
        """Remove that write's directories, then the table's own if nothing else is in it.

        Raises CleanerError if something cannot be removed, or somebody else lies in the directory.
        """
        location = self._resolve(entry.properties[LOCATION])
        write_ids = self._leftovers.aborted_writes(entry)[-1:]
        if entry.highest_write_id not in write_ids:
            return self._ended(
                entry, f"{location.uri} stays: nobody knows that its write was aborted"
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
        done = self._leftovers.remove(entry, location, verdict.root, write_ids)
        self._cleaning.record(entry)
        self._remover.finish(location.uri)
        removed = counted(len(done.reports), "directory", "directories")
        rest = "it is gone" if done.is_gone else "what else is in it stays"
        return CleaningOutcome(
            entry=entry,
            state=CleaningState.CLEANED,
            message=f"{removed} of an aborted write removed from {location.uri}; {rest}",
            victim_count=sum(report.victim_count for report in done.reports),
            archived_count=sum(report.archived_count for report in done.reports),
            deleted_count=sum(report.deleted_count for report in done.reports),
            freed_bytes=sum(report.freed_bytes for report in done.reports),
        )

    def _is_there(self, entry: Compaction, location: Location) -> bool:
        try:
            target = self._planner.target(entry)
        except NoSuchObjectError:
            return False
        return is_below(target.location, location.uri) or is_below(location.uri, target.location)

    def _ended(self, entry: Compaction, message: str) -> CleaningOutcome:
        _LOG.warning("%s", message)
        self._cleaning.record(entry)
        return CleaningOutcome(entry=entry, state=CleaningState.CLEANED, message=message)
