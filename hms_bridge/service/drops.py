"""What every DROP shares: rows, the transaction tables that name them, and their directories."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from changemanager.location import ListedFile, is_below
from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.archive import file_tasks
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import databases, partitions, tables, view_creation
from hms_bridge.catalog.found_partitions import StoredPartition
from hms_bridge.catalog.places import Owner
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.table_rules import has_own_files
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import InvalidOperationError
from hms_bridge.model.catalog import Database, Table
from hms_bridge.model.properties import AUTO_PURGE, is_true
from hms_bridge.model.target import TableName
from hms_bridge.notification import events
from hms_bridge.service.aborts import log_abort
from hms_bridge.service.file_work import FileWork
from hms_bridge.service.locations import parent
from hms_bridge.service.replica_gate import is_kept_by_loads
from hms_bridge.service.unit_of_work import Transactions, UnitOfWork
from hms_bridge.service.warehouse_files import WarehouseFiles
from hms_bridge.txn import late_compactions, late_writers, resources, write_ids
from hms_bridge.txn.write_ids import Writers

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Content:
    """A table before a look at its directories: where its partitions lay, and who could write."""

    table_id: int
    partition_places: frozenset[str]
    writers: Writers


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """What was in directories before the transaction that drops them, by place, and of their
    tables, by name, what they were before that look."""

    files: Mapping[str, Sequence[ListedFile]]
    tables: Mapping[str, _Content]

    def still(
        self, connection: Connection, stored: StoredTable, partition_places: Collection[str]
    ) -> Mapping[str, Sequence[ListedFile]]:
        """What was seen, unless somebody may have committed to the table since, or renamed or
        exchanged partitions of it: then nothing, and the transaction looks again. What it left
        would come back with a new table or partition."""
        table, content = stored.table, self.tables.get(stored.table.name)
        if content is None or content.table_id != stored.id:
            return {}
        if not content.partition_places.issuperset(partition_places):
            return {}
        if table.is_in_txn_tables:
            now = write_ids.writers_of(connection, table.database_name, table.name)
            if content.writers != now:
                return {}
        return self.files


class Drops:
    """First look at what is there, then drop the rows inside the verb's transaction, then carry
    out the tasks that it returned."""

    def __init__(
        self, transactions: Transactions, files: WarehouseFiles, file_work: FileWork
    ) -> None:
        self._transactions = transactions
        self._files = files
        self._file_work = file_work

    def drop_table(
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
        if table.is_in_txn_tables:
            log_abort(unit, late_compactions.end_compactions(unit, table))
        places_of_partitions = partitions.delete_all_of(unit.connection, stored)
        wanted = _directories_of(table, places_of_partitions)
        seen = self._still(unit, looked, stored, wanted, places_of_partitions.values())
        tables.delete_table(unit.connection, stored)
        if table.is_in_txn_tables:
            log_abort(unit, late_writers.end_writers(unit, table))
            resources.forget_table(unit.connection, table.database_name, table.name)
        tasks: Sequence[FileTask] = ()
        if seen is not None and has_own_files(table):
            tasks = self._deletions(
                unit,
                database,
                Owner(table=table),
                wanted,
                seen,
                cause=ArchiveCause.DROP_TABLE,
                is_purge=is_purge,
            )
        unit.events.append(events.table_dropped(table, unit.now_seconds))
        return tasks

    def look_at_tables(self, database: str, names: Sequence[str], catalog: str) -> Looked:
        """What is in the directories of tables that are about to be dropped. Raises MetaError."""

        def work(connection: Connection) -> tuple[list[str], dict[str, _Content]]:
            wanted: list[str] = []
            contents: dict[str, _Content] = {}
            for name in names:
                stored = tables.find_table(connection, database, name, catalog)
                if stored is not None and has_own_files(stored.table):
                    places = partitions.locations(connection, stored)
                    wanted += _directories_of(stored.table, places)
                    contents[name] = _content(connection, stored, places.values())
            return list(self._files.rule.roots_of(wanted)), contents

        return self._look(*self._transactions.read_whole(work))

    def look_at_partitions(
        self,
        key: TableName,
        find: Callable[[Connection, StoredTable], Sequence[StoredPartition]],
    ) -> Looked:
        """What is in the directories of partitions that are about to be dropped."""

        def work(connection: Connection) -> tuple[list[str], dict[str, _Content]]:
            stored = tables.require_table(connection, *key.parts)
            table = stored.table
            if not has_own_files(table):
                return [], {}
            wanted = list(_places(find(connection, stored)))
            content = _content(connection, stored, wanted)
            return list(self._files.rule.roots_of(wanted)), {table.name: content}

        return self._look(*self._transactions.read_whole(work))

    def drop_partitions(
        self,
        unit: UnitOfWork,
        stored: StoredTable,
        stored_partitions: Sequence[StoredPartition],
        *,
        looked: Looked | None,
        is_purge: bool,
    ) -> Sequence[FileTask]:
        """As :meth:`drop_table`, of partitions."""
        if not stored_partitions:
            return ()
        table = stored.table
        names = [p.name for p in stored_partitions]
        if table.is_in_txn_tables:
            log_abort(unit, late_compactions.end_compactions(unit, table, frozenset(names)))
        wanted = _places(stored_partitions)
        seen = self._still(unit, looked, stored, wanted, wanted)
        partitions.delete_partitions(unit.connection, stored_partitions)
        if table.is_in_txn_tables:
            resources.forget_partitions(unit.connection, table.database_name, table.name, names)
        tasks: Sequence[FileTask] = ()
        if seen is not None and has_own_files(table):
            database = databases.require_database(
                unit.connection, table.database_name, table.catalog_name
            )
            tasks = self._deletions(
                unit,
                database.database,
                Owner(table=table, partitions=frozenset(names)),
                wanted,
                seen,
                cause=ArchiveCause.DROP_PARTITION,
                is_purge=is_purge,
            )
        values = [partition.partition.values for partition in stored_partitions]
        unit.events.append(events.partitions_dropped(table, values, unit.now_seconds))
        return tasks

    def _look(self, wanted: Sequence[str], contents: Mapping[str, _Content]) -> Looked:
        self._file_work.settle_moves(*wanted)
        files = {place: self._files.look(place) for place in wanted}
        return Looked(files=files, tables=contents)

    def _still(
        self,
        unit: UnitOfWork,
        looked: Looked | None,
        stored: StoredTable,
        wanted: Collection[str],
        partition_places: Collection[str],
    ) -> Mapping[str, Sequence[ListedFile]] | None:
        """See :meth:`Looked.still`; None if all files stay. Raises MetaError if a directory is
        elsewhere now, because a rename moves it: it may be put back."""
        if looked is None:
            return None
        self._file_work.require_unmoved(unit.connection, list(wanted))
        return looked.still(unit.connection, stored, partition_places)

    def _deletions(
        self,
        unit: UnitOfWork,
        database: Database,
        owner: Owner,
        wanted: Mapping[str, str | None],
        looked: Mapping[str, Sequence[ListedFile]],
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
        purge = is_purge or is_true(table.parameters, AUTO_PURGE)
        tasks = []
        for verdict in self._files.rule.verdicts(unit.connection, list(wanted), owner):
            place = verdict.place
            if verdict.root is None or verdict.refusal is not None:
                is_of_source = is_kept_by_loads(database.parameters) and not table.is_external
                if owner.partitions is not None and (table.is_transactional or is_of_source):
                    self._require_no_return(table, place, verdict.refusal)
                _LOG.warning("%s is dropped, its files stay: %s", place, verdict.refusal)
                continue
            tasks.append(
                self._file_work.deletion(
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
        file_tasks.add(unit, tasks)
        return tasks

    def _require_no_return(self, table: Table, place: str, refusal: str | None) -> None:
        """The next INSERT makes a dropped partition again at its usual place, and rows that had
        to stay there would be in it; of a plain table that is as in Hive, but a replica's source
        does not have them. Raises InvalidOperationError."""
        home = table.storage.location
        if home and is_below(place, home) and self._files.look(place):
            raise InvalidOperationError(
                f"{place} cannot be dropped: {refusal}; its rows would come back with the next "
                "partition of that name"
            )

    def carry_out(self, tasks: Sequence[FileTask]) -> None:
        """Carry out the tasks of dropped partitions; the directories that lay above nothing else
        go with them, up to the table's (``DropPartitionsHandler.PathAndDepth``)."""
        self._file_work.carry_out(tasks)
        above = {
            place
            for task in tasks
            if (name := task.context.partition) and task.location.endswith(f"/{name}")
            for place in _parents(task.location, name.count("/"))
        }
        for place in sorted(above, key=len, reverse=True):
            self._files.remove_if_empty(place)


def _content(
    connection: Connection, stored: StoredTable, partition_places: Iterable[str]
) -> _Content:
    table = stored.table
    return _Content(
        table_id=stored.id,
        partition_places=frozenset(partition_places),
        writers=write_ids.writers_of(connection, table.database_name, table.name),
    )


def _directories_of(table: Table, places_of_partitions: Mapping[str, str]) -> dict[str, str | None]:
    """A table's directory, and those of its partitions that lie elsewhere."""
    own = table.storage.location
    wanted: dict[str, str | None] = {own: None} if own else {}
    for name, place in places_of_partitions.items():
        if own is None or not is_below(place, own):
            wanted[place] = name
    return wanted


def _places(stored_partitions: Sequence[StoredPartition]) -> dict[str, str | None]:
    """Their directories, each with the name of its partition."""
    return {
        p.partition.storage.location: p.name
        for p in stored_partitions
        if p.partition.storage.location
    }


def _parents(location: str, count: int) -> list[str]:
    """The next directories above, the nearest first."""
    above = [location]
    for _ in range(count):
        above.append(parent(above[-1]))
    return above[1:]
