"""Give a partition other values: its name moves through every table, its directory too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import databases, partitions, tables
from hms_bridge.catalog.found_partitions import StoredPartition, is_same_place
from hms_bridge.catalog.limits import check_partition
from hms_bridge.catalog.partitions import name_of
from hms_bridge.catalog.places import Owner
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import InvalidOperationError, MetaError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Partition, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.target import TableName
from hms_bridge.notification import events
from hms_bridge.service import file_statistics, moves
from hms_bridge.service.aborts import log_abort
from hms_bridge.service.file_statistics import FileCount
from hms_bridge.service.foundation import (
    VerbFamily,
    changed_meanwhile,
    normal_partition,
    with_ddl_time,
)
from hms_bridge.service.locations import partition_location
from hms_bridge.service.replica_gate import require_definitions_open
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import late_compactions, resources, write_ids


@dataclass(frozen=True, kw_only=True, slots=True)
class _Renaming:
    """One partition under its old name, and what it becomes; the table's highest write id before
    anything is moved."""

    table_key: TableName
    highest_write_id: WriteId
    old: StoredPartition
    wanted: Partition
    counted: FileCount | None


class RenamePartitionVerbs(VerbFamily):
    """rename_partition: not in the port, because no other room needs it; the server does."""

    def rename_partition(
        self,
        database: str,
        table: str,
        values: Sequence[str],
        partition: Partition,
        *,
        catalog: str = DEFAULT_CATALOG,
    ) -> None:
        key = TableName.lower(database, table, catalog)
        stored, old, is_source, highest = self._transactions.read_whole(
            lambda c: _look_up(c, key, values)
        )
        move = _move_of(stored.table, old, partition)
        is_due = file_statistics.is_due_for_partition(stored.table, old.partition, partition, {})
        renaming = _Renaming(
            table_key=key,
            highest_write_id=highest,
            old=old,
            wanted=partition,
            counted=self._files.count(old.partition.storage.location) if is_due else None,
        )
        if move is None:
            self._transactions.write(lambda unit: self._rename(unit, renaming, None))
            return
        self._transactions.read(lambda c: _require_movable(c, stored, partition))
        owner = Owner(table=stored.table, partitions=frozenset({old.name}))
        self._transactions.read(lambda c: self._files.rule.require_alone(c, owner, move[0]))
        if is_source:
            self._files.require_archive(f"partition {old.name} of {stored.table.full_name}")
        self._rename_with_move(renaming, *move, is_archived=is_source)

    def _rename_with_move(
        self, renaming: _Renaming, source: str, target: str, *, is_archived: bool
    ) -> None:
        self._file_work.settle(source, target)
        context = ArchiveContext(
            cause=ArchiveCause.RENAME,
            location=source,
            database=renaming.table_key.database,
            table=renaming.table_key.table,
            partition=renaming.old.name,
        )
        with self._file_work.moved(
            source,
            target,
            context=context,
            is_archived=is_archived,
            require=lambda c: _require_same(c, renaming),
        ) as task:
            self._transactions.write(lambda unit: self._rename(unit, renaming, task))

    def _rename(self, unit: UnitOfWork, renaming: _Renaming, move: FileTask | None) -> None:
        stored = tables.require_table(unit.connection, *renaming.table_key.parts, RowLock.SHARED)
        table = stored.table
        old = _require_old(unit.connection, stored, renaming.old.name, RowLock.EXCLUSIVE)
        if not is_same_place(renaming.old, old):
            raise _changed(table, old, "it was renamed")
        _require_free(unit.connection, stored, renaming.wanted)
        if move is not None:
            owner = Owner(table=table, partitions=frozenset({old.name}))
            self._files.rule.require_alone(unit.connection, owner, move.location)
            moves.require_no_new_writer(unit.connection, table, renaming.highest_write_id)
        place = move.target if move else renaming.wanted.storage.location
        normal = normal_partition(renaming.wanted, table)
        parameters = file_statistics.of_partition(
            table, old.partition, normal, renaming.counted, {}
        )
        new = replace(
            normal,
            create_time=old.partition.create_time,
            storage=replace(normal.storage, location=place or old.partition.storage.location),
            parameters=with_ddl_time(dict(parameters), unit.now_seconds),
        )
        name = name_of(table, new.values)
        check_partition(new, name)
        partitions.update_partitions(unit.connection, stored, [(old, new)])
        if move is not None:
            is_same = old.partition.storage.location == move.location
            if not is_same or not self._file_work.finish(unit, move):
                raise _changed(table, old, "its directory was moved")
        if table.is_in_txn_tables:
            log_abort(unit, late_compactions.end_compactions(unit, table, {old.name}))
            resources.rename_partition(
                unit.connection, table.database_name, table.name, old.name, name
            )
        unit.events.append(events.partition_altered(table, old.partition, new, unit.now_seconds))


def _changed(table: Table, old: StoredPartition, meanwhile: str) -> MetaError:
    return changed_meanwhile(f"partition {old.name} of {table.full_name}", meanwhile)


def _look_up(
    connection: Connection, key: TableName, values: Sequence[str]
) -> tuple[StoredTable, StoredPartition, bool, WriteId]:
    stored = tables.require_table(connection, *key.parts)
    old = _require_old(connection, stored, name_of(stored.table, values))
    database = databases.require_database(connection, key.database, key.catalog).database
    highest = write_ids.get_max_allocated_write_id(connection, key.database, key.table)
    return stored, old, database.is_replication_source, highest


def _move_of(table: Table, old: StoredPartition, wanted: Partition) -> tuple[str, str] | None:
    """From where to where the directory goes. None if it stays: only one that lies where its
    managed table puts it follows the name, and only if no other place is asked for."""
    target = partition_location(table, name_of(table, wanted.values))
    source = old.partition.storage.location
    if table.is_view or table.is_external or source is None or target is None:
        return None
    is_own = source == partition_location(table, old.name)
    is_elsewhere_wanted = wanted.storage.location not in (None, "", source)
    return (source, target) if is_own and not is_elsewhere_wanted and source != target else None


def _require_old(
    connection: Connection, stored: StoredTable, name: str, lock: RowLock = RowLock.NONE
) -> StoredPartition:
    stored_partitions = partitions.find_by_names(connection, stored, [name], lock).stored()
    if not stored_partitions:
        raise InvalidOperationError(
            "Unable to rename partition because old partition does not exist"
        )
    return stored_partitions[0]


def _require_same(connection: Connection, renaming: _Renaming) -> None:
    stored = tables.require_table(connection, *renaming.table_key.parts, RowLock.EXCLUSIVE)
    now = _require_old(connection, stored, renaming.old.name)
    if not is_same_place(renaming.old, now):
        raise _changed(stored.table, now, "its rename began")


def _require_movable(connection: Connection, stored: StoredTable, wanted: Partition) -> None:
    """Before anything is moved: readers would find nothing until it is moved back."""
    table = stored.table
    require_definitions_open(connection, table.database_name, f"alter_partition {table.name}")
    _require_free(connection, stored, wanted)


def _require_free(connection: Connection, stored: StoredTable, wanted: Partition) -> None:
    name = name_of(stored.table, wanted.values)
    if partitions.existing_names(connection, stored, [name]):
        raise InvalidOperationError(
            f"Partition already exists:{stored.table.full_name}.[{', '.join(wanted.values)}]"
        )
