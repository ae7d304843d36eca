"""What every DROP shares: rows, the transaction tables that name them, and their directories."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.archive import file_tasks
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import partitions, places, tables, view_creation
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.table_rules import has_own_files, parameter
from hms_bridge.errors import InvalidOperationError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Database, Table
from hms_bridge.notification import events
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.locations import is_below, parent, partition_location
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import resources

_LOG = logging.getLogger(__name__)


class DropVerbs(VerbFamily):
    """Parts of verbs; each runs inside a transaction that its caller opened."""

    def _drop_table_rows(
        self,
        unit: UnitOfWork,
        database: Database,
        name: str,
        *,
        is_data_deleted: bool,
        is_purge: bool,
    ) -> Sequence[FileTask]:
        """Remove a table and write down which directories must go."""
        stored = tables.require_table(
            unit.connection, database.name, name, database.catalog_name, RowLock.EXCLUSIVE
        )
        table = view_creation.with_creation(unit.connection, stored).table
        places_of_partitions = partitions.delete_all_of(unit.connection, stored)
        tables.delete_table(unit.connection, stored)
        if table.is_transactional and table.catalog_name == DEFAULT_CATALOG:
            resources.forget_table(unit.connection, table.database_name, table.name)
        tasks: Sequence[FileTask] = ()
        if is_data_deleted and has_own_files(table):
            tasks = self._table_deletions(
                unit, database, table, places_of_partitions, is_purge=is_purge
            )
        unit.events.append(events.table_dropped(table, unit.now_seconds))
        return tasks

    def _table_deletions(
        self,
        unit: UnitOfWork,
        database: Database,
        table: Table,
        places_of_partitions: Mapping[str, str],
        *,
        is_purge: bool,
    ) -> Sequence[FileTask]:
        own = table.storage.location
        wanted: dict[str, str | None] = {own: None} if own else {}
        for name, place in places_of_partitions.items():
            if own is None or not is_below(place, own):
                wanted[place] = name
        return self._deletions(
            unit, database, table, wanted, cause=ArchiveCause.DROP_TABLE, is_purge=is_purge
        )

    def _deletions(
        self,
        unit: UnitOfWork,
        database: Database,
        table: Table,
        wanted: Mapping[str, str | None],
        *,
        cause: ArchiveCause,
        is_purge: bool,
    ) -> Sequence[FileTask]:
        """Tasks for directories (with the partition that each belongs to), written down."""
        is_archived = database.is_replication_source and bool(wanted)
        if is_archived:
            self._files.require_archive(f"table {table.full_name}")
        purge = is_purge or (parameter(table.parameters, "auto.purge") or "").lower() == "true"
        tasks = [
            self._files.deletion(
                place,
                context=ArchiveContext(
                    cause=cause,
                    location=place,
                    database=table.database_name,
                    table=table.name,
                    partition=partition,
                ),
                is_archived=is_archived,
                is_purge=purge,
            )
            for place, partition in self._free(unit, table, wanted)
        ]
        file_tasks.add(unit.connection, tasks)
        return tasks

    def _delete_partitions(self, tasks: Sequence[FileTask]) -> None:
        """Carry out the tasks of dropped partitions; the directories that lay above nothing else
        go with them, up to the table's (``DropPartitionsHandler.PathAndDepth``)."""
        self._files.carry_out(tasks)
        above = {
            place
            for task in tasks
            if (name := task.context.partition) and task.location.endswith(f"/{name}")
            for place in _parents(task.location, name.count("/"))
        }
        for place in sorted(above, key=len, reverse=True):
            self._files.remove_if_empty(place)

    def _free(
        self, unit: UnitOfWork, table: Table, wanted: Mapping[str, str | None]
    ) -> Sequence[tuple[str, str | None]]:
        """Those of the directories to delete in which nothing else of the catalog lies."""
        found = []
        strangers: Sequence[tuple[str, str]] | None = None
        for place, partition in wanted.items():
            if partition is not None and place == partition_location(table, partition):
                if strangers is None:  # one look for all of them: a statement may drop thousands
                    above = table.storage.location or place
                    strangers = places.strangers_below(unit.connection, above, table)
                user = places.name_below(strangers, place)
            else:
                user = places.user_of(unit.connection, place)
            if user is None:
                found.append((place, partition))
            else:
                _LOG.warning("%s is not deleted: %s lies in it too", place, user)
        return found

    def _require_alone(
        self,
        connection: Connection,
        table: Table,
        *directories: str,
        what: str = "moved",
        is_with_own: bool = False,
    ) -> None:
        """Raises InvalidOperationError if something else lies in a directory that is to be moved
        or emptied for its table or a partition; ``is_with_own``: the table's partitions may."""
        above = (table.storage.location,) if table.storage.location else directories
        strangers = [
            stranger
            for place in above  # one look for all of them: a statement may name thousands
            for stranger in places.strangers_below(
                connection, place, table, is_moved_along=is_with_own
            )
        ]
        for place in directories:
            user = places.name_below(strangers, place)
            if user is not None:
                raise InvalidOperationError(
                    f"{place} cannot be {what}: {user} lies in it too; give that another location "
                    "first"
                )

    def _forget_database(self, unit: UnitOfWork, database: Database) -> None:
        if database.catalog_name == DEFAULT_CATALOG:
            resources.forget_database(unit.connection, database.name)


def _parents(location: str, count: int) -> list[str]:
    """The next directories above, the nearest first."""
    found = [location]
    for _ in range(count):
        found.append(parent(found[-1]))
    return found[1:]
