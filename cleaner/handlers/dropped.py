"""Reason to delete: a table or partition was dropped softly, its files were left for later.

Such an entry (a Hive metastore beside us makes them) carries the directory in its property
`location`, and becomes ready when no reader from before the drop is left (docs/hive/compaction.md
§21).
"""

from __future__ import annotations

import logging

from changemanager.location import Resolver, is_below
from changemanager.manifest import ArchiveCause, ArchiveContext
from cleaner.errors import CleanerError
from cleaner.handlers.acid_cleaning import AcidCleaning
from cleaner.plan import CleaningOutcome, CleaningState
from cleaner.planner import CleaningPlanner
from cleaner.remover import Remover
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.compaction import LOCATION, Compaction
from hms_bridge.model.properties import IF_PURGE

_LOG = logging.getLogger(__name__)


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
        try:
            target = self._planner.target(entry)
        except NoSuchObjectError:
            pass
        else:
            if is_below(target.location, place.uri) or is_below(place.uri, target.location):
                return self._cleaning.clean(entry)
        verdict = self._metastore.may_be_deleted(place.uri)
        if verdict.root is None:
            return self._left(entry, f"{place.uri} was dropped, its files stay: {verdict.refusal}")
        if verdict.refusal is not None:
            raise CleanerError(
                f"{place.uri} was dropped, but {verdict.refusal}; nothing was deleted"
            )
        is_partition = entry.target.partition is not None
        report = self._remover.remove_path(
            place.uri,
            root=verdict.root,
            context=ArchiveContext(
                cause=ArchiveCause.DROP_PARTITION if is_partition else ArchiveCause.DROP_TABLE,
                location=place.uri,
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
        self._cleaning.record(entry)
        self._remover.finish(place.uri)
        return CleaningOutcome(
            entry=entry,
            state=CleaningState.CLEANED,
            message=f"the dropped directory {place.uri} was removed",
            victim_count=report.victim_count,
            archived_count=report.archived_count,
            deleted_count=report.deleted_count,
            freed_bytes=report.freed_bytes,
        )

    def _left(self, entry: Compaction, message: str) -> CleaningOutcome:
        """The end of an entry whose directory nobody but a person may delete."""
        _LOG.warning("%s", message)
        self._cleaning.record(entry)
        return CleaningOutcome(entry=entry, state=CleaningState.CLEANED, message=message)
