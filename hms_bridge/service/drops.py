"""What every DROP shares: rows, the transaction tables that name them, and their directories."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from changemanager.location import ListedFile, is_below
from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.archive import file_tasks
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import partitions, tables, view_creation
from hms_bridge.catalog.places import Owner
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.table_rules import has_own_files
from hms_bridge.errors import InvalidObjectError, InvalidOperationError, MetaError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Database, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import parameter
from hms_bridge.notification import events
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.locations import parent
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import resources, write_ids

_LOG = logging.getLogger(__name__)

Looked = Mapping[str, Sequence[ListedFile]]
"""What was in directories before the transaction that drops them."""


class DropVerbs(VerbFamily):
    """Parts of verbs; each runs inside a transaction that its caller opened."""

    def _drop_table_rows(
        self,
        unit: UnitOfWork,
        database: Database,
        name: str,
        *,
        looked: Looked | None,
        is_purge: bool,
    ) -> Sequence[FileTask]:
        """Remove a table and write down which directories must go; None: all files stay."""
        stored = tables.require_table(
            unit.connection, database.name, name, database.catalog_name, RowLock.EXCLUSIVE
        )
        table = view_creation.with_creation(unit.connection, stored).table
        places_of_partitions = partitions.delete_all_of(unit.connection, stored)
        tables.delete_table(unit.connection, stored)
        if table.is_transactional and table.catalog_name == DEFAULT_CATALOG:
            resources.forget_table(unit.connection, table.database_name, table.name)
        tasks: Sequence[FileTask] = ()
        if looked is not None and has_own_files(table):
            tasks = self._deletions(
                unit,
                database,
                Owner(table=table),
                _directories_of(table, places_of_partitions),
                looked,
                cause=ArchiveCause.DROP_TABLE,
                is_purge=is_purge,
            )
        unit.events.append(events.table_dropped(table, unit.now_seconds))
        return tasks

    def _look_at_tables(self, database: str, names: Sequence[str], catalog: str) -> Looked:
        """What is in the directories of tables that are about to be dropped. Raises MetaError."""

        def work(connection: Connection) -> list[str]:
            wanted: list[str] = []
            for name in names:
                stored = tables.find_table(connection, database, name, catalog)
                if stored is not None and has_own_files(stored.table):
                    found = partitions.locations(connection, stored)
                    wanted += _directories_of(stored.table, found)
            return self._deletable(connection, wanted)

        return self._look(self._transactions.read(work))

    def _look(self, wanted: Sequence[str]) -> Looked:
        return {place: self._files.look(place) for place in wanted}

    def _deletable(self, connection: Connection, wanted: Sequence[str]) -> list[str]:
        roots = self._files.rule.roots_of(connection, wanted)
        return [place for place in wanted if place in roots]

    def _deletions(
        self,
        unit: UnitOfWork,
        database: Database,
        owner: Owner,
        wanted: Mapping[str, str | None],
        looked: Looked,
        *,
        cause: ArchiveCause,
        is_purge: bool,
    ) -> Sequence[FileTask]:
        """Tasks for directories (with the partition that each belongs to), written down: to delete
        what was in them before the transaction. What must stay is only logged."""
        table = owner.table
        is_archived = database.is_replication_source and bool(wanted)
        if is_archived:
            self._files.require_archive(f"table {table.full_name}")
        purge = is_purge or (parameter(table.parameters, "auto.purge") or "").lower() == "true"
        tasks = []
        for verdict in self._files.rule.verdicts(unit.connection, list(wanted), owner):
            place = verdict.place
            if verdict.root is None or verdict.refusal is not None:
                _LOG.warning("%s is dropped, its files stay: %s", place, verdict.refusal)
                continue
            tasks.append(
                self._files.deletion(
                    place,
                    root=verdict.root,
                    # It may have got its place since then; what is there now is of this commit.
                    seen=looked[place] if place in looked else self._files.look(place),
                    context=ArchiveContext(
                        cause=cause,
                        location=place,
                        database=table.database_name,
                        table=table.name,
                        partition=wanted[place],
                    ),
                    is_archived=is_archived,
                    is_purge=purge,
                )
            )
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

    def _require_alone(
        self, connection: Connection, owner: Owner, *directories: str, what: str = "moved"
    ) -> None:
        """Raises InvalidOperationError if something else lies in a directory that is to be moved
        or emptied for its owner, or if it lies in a directory of something else."""
        found = self._files.rule.strangers(connection, directories, owner)
        for place, why in found.items():
            raise InvalidOperationError(
                f"{place} cannot be {what}: {why}; give that another location first"
            )

    def _require_no_new_writer(
        self, connection: Connection, table: Table, highest_before: WriteId
    ) -> None:
        """Raises MetaError if somebody took a write id of the table while a directory of it was
        moved: what they write may lie at the old place, and be committed already."""
        if not table.is_transactional or table.catalog_name != DEFAULT_CATALOG:
            return
        highest = write_ids.get_max_allocated_write_id(
            connection, table.database_name, table.name, is_locked=True
        )
        if highest != highest_before:
            raise MetaError(
                f"{table.full_name} was written to while a directory of it was moved (write id "
                f"{highest}); try again, or hold an exclusive lock on it meanwhile"
            )

    def _require_unshared(
        self, connection: Connection, table: Table, wanted: Sequence[str], owner: Owner | None
    ) -> None:
        """A new directory of a transactional table is its own: its compaction would take files of
        others for its own, and the cleaner would delete them. Raises InvalidObjectError."""
        if not table.is_transactional or not wanted:
            return
        for place, why in self._files.rule.strangers(connection, wanted, owner).items():
            raise InvalidObjectError(
                f"{place} cannot be a directory of the transactional table {table.full_name}: "
                f"{why}; give it one of its own"
            )

    def _forget_database(self, unit: UnitOfWork, database: Database) -> None:
        if database.catalog_name == DEFAULT_CATALOG:
            resources.forget_database(unit.connection, database.name)


def _directories_of(table: Table, places_of_partitions: Mapping[str, str]) -> dict[str, str | None]:
    """A table's directory, and those of its partitions that lie elsewhere."""
    own = table.storage.location
    wanted: dict[str, str | None] = {own: None} if own else {}
    for name, place in places_of_partitions.items():
        if own is None or not is_below(place, own):
            wanted[place] = name
    return wanted


def _parents(location: str, count: int) -> list[str]:
    """The next directories above, the nearest first."""
    found = [location]
    for _ in range(count):
        found.append(parent(found[-1]))
    return found[1:]
