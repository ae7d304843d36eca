"""Reason to delete: a CREATE TABLE AS SELECT failed after it had written (Hive: RollbackCTASHook).

Hive's cleaner deletes the whole directory; here goes only what that write left.
"""

from __future__ import annotations

from changemanager.location import Resolver
from cleaner.errors import CleanerError
from cleaner.handlers.acid_cleaning import AcidCleaning
from cleaner.leftovers import Leftovers
from cleaner.plan import CleaningOutcome
from cleaner.planner import CleaningPlanner
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import LOCATION, Compaction
from hms_bridge.model.counted import counted


class NeverCreatedHandler:
    """Removes what an aborted write left in the directory of a table that was never made."""

    def __init__(
        self,
        metastore: LocalMetastore,
        planner: CleaningPlanner,
        cleaning: AcidCleaning,
        leftovers: Leftovers,
        resolve: Resolver,
    ) -> None:
        self._metastore = metastore
        self._planner = planner
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
            return self._cleaning.leave(
                entry, f"{location.uri} stays: nobody knows that its write was aborted"
            )
        if self._planner.has_target_at(entry, location):
            return self._cleaning.leave(
                entry, f"{entry.target} is there by now, and cleaned like any other table"
            )
        verdict = self._metastore.may_be_deleted(location.uri)
        if verdict.root is None:
            return self._cleaning.leave(entry, f"{location.uri} stays: {verdict.refusal}")
        if verdict.refusal is not None:
            raise CleanerError(f"{location.uri}: {verdict.refusal}; nothing was deleted")
        report, is_gone = self._leftovers.remove(entry, location, verdict.root, write_ids)
        removed = counted(report.victim_count, "directory", "directories")
        rest = "it is gone" if is_gone else "what else is in it stays"
        message = f"{removed} of an aborted write removed from {location.uri}; {rest}"
        return self._cleaning.end(entry, location.uri, message, report)
