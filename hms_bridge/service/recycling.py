"""Files that a client is about to remove are archived first (Hive: HMSHandler.cm_recycle;
docs/hive/replication.md §5)."""

from __future__ import annotations

from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import databases, places
from hms_bridge.errors import MetaError
from hms_bridge.service.foundation import VerbFamily


class RecycleVerbs(VerbFamily):
    """The ServedRecycling."""

    def recycle_directory(self, location: str) -> None:
        place = self._roots.uri(location, "dataPath")
        context, is_source = self._transactions.read(lambda c: _look(c, place))
        if self._files.cmroot is None:
            if is_source:
                self._files.require_archive(place)
            return
        if context is None:
            raise MetaError(
                f"{place} lies in the directory of no table or partition; only files of tables "
                "are archived"
            )
        self._files.known_root(place)
        self._file_work.copies.archive_before_removal(place, context)


def _look(connection: Connection, place: str) -> tuple[ArchiveContext | None, bool]:
    """On whose behalf a place is archived, and whether for a replication source; None for a place
    of nobody: no dump names what lies there, and whoever asks could have any directory copied."""
    tenant = places.innermost(connection, place)
    if tenant is None or tenant.table_id is None:
        return None, False
    catalog, database, table = places.names_of(connection, tenant.table_id)
    stored = databases.find_database(connection, database, catalog)
    context = ArchiveContext(
        cause=ArchiveCause.REQUEST,
        location=tenant.place,
        database=database,
        table=table,
        partition=tenant.partition,
    )
    return context, stored is not None and stored.database.is_replication_source
