"""Reason to delete: a table or partition was dropped softly, its files were left for later.

Such an entry (a Hive metastore beside us makes them) carries the directory in its property
`location`, and becomes ready when no reader from before the drop is left (docs/hive/compaction.md
§21).
"""

from __future__ import annotations

from changemanager.location import Resolver
from cleaner.errors import CleanerError
from cleaner.handlers.acid_cleaning import AcidCleaning
from cleaner.plan import CleaningOutcome
from cleaner.planner import CleaningPlanner
from cleaner.remover import Remover
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import LOCATION, Compaction


class DroppedHandler:
    """Removes whole directories, unless something lives in them again."""

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
        """Remove the directory; one that was made anew is cleaned like any other table's.

        Raises CleanerError if it cannot be removed, or something else lives in it.
        """
        place = self._resolve(entry.properties[LOCATION])
        if self._planner.has_target_at(entry, place):
            return self._cleaning.clean(entry)
        verdict = self._metastore.may_be_deleted(place.uri)
        if verdict.root is None:
            return self._cleaning.leave(
                entry, f"{place.uri} was dropped, its files stay: {verdict.refusal}"
            )
        if verdict.refusal is not None:
            raise CleanerError(
                f"{place.uri} was dropped, but {verdict.refusal}; nothing was deleted"
            )
        report = self._remover.remove_whole(
            entry,
            [place.uri],
            location=place.uri,
            root=verdict.root,
            is_archived=self._planner.is_replication_source(entry.target.database),
        )
        message = f"the dropped directory {place.uri} was removed"
        return self._cleaning.end(entry, place.uri, message, report)
