"""ALTER TABLE: its rules, and what a new name moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import databases, parameters, partitions, places, tables, view_creation
from hms_bridge.catalog.found_partitions import StoredPartition
from hms_bridge.catalog.places import Owner
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.table_rules import (
    check_alteration,
    check_expected_parameter,
    expected_parameter,
    unexpected_parameter,
    with_altered_acid_properties,
)
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import InvalidOperationError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Database, Partition, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import is_true
from hms_bridge.model.target import TableName
from hms_bridge.notification import events
from hms_bridge.service import altered_statistics, file_statistics, moves
from hms_bridge.service.aborts import log_abort
from hms_bridge.service.foundation import VerbFamily, changed_meanwhile, normal_table, with_ddl_time
from hms_bridge.service.replica_gate import require_definitions_open
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import late_compactions, late_writers, resources, write_ids

CASCADE = "CASCADE"
"""Environment key: change the columns of all partitions too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Move:
    """A directory to move because its table gets another name.

    ``highest_write_id`` of the table before the directory is moved: who takes one later may write
    to the old place.
    """

    table_id: int
    source: str
    target: str
    is_archived: bool
    highest_write_id: WriteId


@dataclass(frozen=True, kw_only=True, slots=True)
class _Moved:
    """A move whose directory is at its new place, and that its table does not know of yet."""

    task: FileTask
    plan: _Move


@dataclass(frozen=True, kw_only=True, slots=True)
class _Alteration:
    """What to change: the table's name till now, and what the statement says of itself."""

    old_name: TableName
    environment: Mapping[str, str]
    valid_write_ids: str | None
    counted: _Counted | None = None

    @property
    def is_cascade(self) -> bool:
        return self.environment.get(CASCADE, "").lower() == "true"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Counted:
    """Whose files were counted, and where, before the transaction."""

    table_id: int
    location: str | None

    def require_same(self, stored: StoredTable, wanted: Table) -> None:
        location = wanted.storage.location or stored.table.storage.location
        if (stored.id, location) != (self.table_id, self.location):
            raise changed_meanwhile(stored.table.full_name, "its files were counted")


class AlterTableVerbs(VerbFamily):
    """alter_table (CatalogStore)."""

    def alter_table(
        self,
        database: str,
        name: str,
        table: Table,
        *,
        environment: Mapping[str, str] | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        wanted = normal_table(table)
        old_name = TableName.lower(database, name, wanted.catalog_name)
        alteration = _Alteration(
            old_name=old_name,
            environment=environment or {},
            valid_write_ids=valid_write_ids,
        )
        if old_name == _name_of(wanted):
            alteration, wanted = self._with_file_statistics(alteration, wanted)
            self._transactions.write(lambda unit: self._alter(unit, alteration, wanted))
            return
        move = self._move_for(alteration, wanted)
        if move is None:
            self._transactions.write(lambda unit: self._alter(unit, alteration, wanted))
            return
        self._alter_with_move(alteration, wanted, move)

    def _with_file_statistics(
        self, alteration: _Alteration, wanted: Table
    ) -> tuple[_Alteration, Table]:
        """Counted before the transaction, which must not wait for a file system."""
        environment = alteration.environment
        if not file_statistics.is_due_for_altered(wanted, environment):
            return alteration, wanted
        name = alteration.old_name
        stored = _require(
            self._transactions.read_whole(lambda c: tables.find_table(c, *name.parts)), name
        )
        location = wanted.storage.location or stored.table.storage.location
        with_counts = file_statistics.of_table(
            wanted.parameters, self._files.count(location), environment
        )
        counted = _Counted(table_id=stored.id, location=location)
        return replace(alteration, counted=counted), replace(wanted, parameters=with_counts)

    def _alter_with_move(self, alteration: _Alteration, wanted: Table, move: _Move) -> None:
        old_name = alteration.old_name
        self._file_work.settle(move.source)
        self._file_work.settle(move.target)
        context = ArchiveContext(
            cause=ArchiveCause.RENAME,
            location=move.source,
            database=old_name.database,
            table=old_name.table,
        )
        altered = replace(wanted, storage=replace(wanted.storage, location=move.target))
        with self._file_work.moved(
            move.source,
            move.target,
            context=context,
            is_archived=move.is_archived,
            require=lambda c: _require_same(c, old_name, move),
        ) as task:
            self._transactions.write(
                lambda unit: self._alter(
                    unit, alteration, altered, moved=_Moved(task=task, plan=move)
                )
            )

    def _move_for(self, alteration: _Alteration, wanted: Table) -> _Move | None:
        """Whether the directory follows the name: managed tables at their default place do
        (HiveAlterHandler.alterTable). Also refuses early what the transaction will refuse."""
        old_name = alteration.old_name

        def work(connection: Connection) -> tuple[StoredTable, Database, Database, WriteId]:
            old = _require(tables.find_table(connection, *old_name.parts), old_name)
            from_database, to_database = (
                databases.find_database(connection, name, wanted.catalog_name)
                for name in (old_name.database, wanted.database_name)
            )
            if from_database is None or to_database is None:
                raise InvalidOperationError(
                    f"Unable to change partition or table. Database {wanted.database_name} "
                    "does not exist"
                )
            # Before anything is moved: readers would find nothing until it is moved back.
            for name in dict.fromkeys((old_name.database, wanted.database_name)):
                require_definitions_open(connection, name, f"alter_table {wanted.name}")
            _check_name_is_free(connection, to_database.id, wanted)
            highest = write_ids.get_max_allocated_write_id(
                connection, old_name.database, old_name.table
            )
            return old, from_database.database, to_database.database, highest

        stored, old_database, new_database, highest = self._transactions.read_whole(work)
        old, source = stored.table, stored.table.storage.location
        check_expected_parameter(old, wanted, alteration.environment)
        _check_replication(old_database, new_database)
        check_alteration(old, wanted)
        with_altered_acid_properties(old, wanted)
        translated = is_true(old.parameters, "TRANSLATED_TO_EXTERNAL")
        if old.is_view or source is None or (old.is_external and not translated):
            return None
        is_kept = wanted.storage.location in (None, "", source)
        default = self._roots.table_location(old_database, old.name, is_external=old.is_external)
        if not is_kept or source.rstrip("/") != self._roots.uri(default, "default location"):
            return None
        self._transactions.read(
            lambda c: self._files.rule.require_alone(c, Owner(table=old), source)
        )
        target = self._roots.table_location(new_database, wanted.name, is_external=old.is_external)
        return _Move(
            table_id=stored.id,
            source=source,
            target=self._roots.uri(target, f"location of table '{wanted.full_name}'"),
            is_archived=old_database.is_replication_source,
            highest_write_id=highest,
        )

    def _alter(
        self,
        unit: UnitOfWork,
        alteration: _Alteration,
        wanted: Table,
        *,
        moved: _Moved | None = None,
    ) -> None:
        connection, old_name = unit.connection, alteration.old_name
        stored = _require(
            tables.find_table(connection, *old_name.parts, RowLock.EXCLUSIVE),
            old_name,
        )
        _replace_expected_parameter(connection, stored, wanted, alteration.environment)
        if alteration.counted is not None:
            alteration.counted.require_same(stored, wanted)
        stored = view_creation.with_creation(connection, stored)
        new_database = stored.database_id
        if old_name != _name_of(wanted):
            stored_database = databases.require_database(
                connection, wanted.database_name, wanted.catalog_name, RowLock.SHARED
            )
            new_database = stored_database.id
            _check_name_is_free(connection, new_database, wanted)
        after = altered_statistics.altered_table(
            connection,
            stored,
            self._altered(unit, stored.table, wanted),
            alteration.valid_write_ids,
        )
        tables.update_table(connection, stored, after, new_database)
        altered_statistics.settle_partitions_of(
            connection, stored, after, is_cascade=alteration.is_cascade
        )
        place = after.storage.location
        if moved is None and place and place != stored.table.storage.location:
            owner = Owner(table=stored.table)
            self._files.rule.require_unshared(connection, after, [place], owner)
        if moved is not None:
            self._finish_move(unit, stored, after, moved)
        changes: list[tuple[StoredPartition, Partition]] = []
        if alteration.is_cascade and stored.table.storage.columns != after.storage.columns:
            changes = _cascade_columns(unit, stored, after)
        if stored.table.is_in_txn_tables:
            resources.rename_table(connection, old_name, _name_of(after))
        unit.events.append(events.table_altered(stored.table, after, unit.now_seconds))
        # Hive logs no partition here: its replicas keep the old columns there.
        unit.events += events.partitions_altered(
            after,
            [(old.partition, new) for old, new in changes],
            unit.now_seconds,
            is_one_event=self._settings.events.is_alter_partitions_one_event,
        )

    def _finish_move(
        self, unit: UnitOfWork, stored: StoredTable, after: Table, moved: _Moved
    ) -> None:
        connection, task = unit.connection, moved.task
        self._files.rule.require_alone(connection, Owner(table=stored.table), task.location)
        moves.require_no_new_writer(connection, stored.table, moved.plan.highest_write_id)
        if stored.table.storage.location != task.location or not self._file_work.finish(unit, task):
            raise changed_meanwhile(stored.table.full_name, "its directory was moved")
        if stored.table.is_in_txn_tables:
            log_abort(unit, late_compactions.end_compactions(unit, stored.table))
            late_writers.note_writers(unit, stored.table)
        places.move_partitions(connection, stored.id, task.location, after.storage.location or "")

    def _altered(self, unit: UnitOfWork, old: Table, wanted: Table) -> Table:
        check_alteration(old, wanted)
        checked = with_altered_acid_properties(old, wanted)
        location = wanted.storage.location or old.storage.location
        if location is not None:
            is_kept = location == old.storage.location
            checked_location = self._roots.uri if is_kept else self._roots.directory
            location = checked_location(location, f"location of table '{wanted.full_name}'")
        return replace(
            checked,
            id=old.id,
            create_time=old.create_time,
            storage=replace(checked.storage, location=location),
            parameters=with_ddl_time(dict(checked.parameters), unit.now_seconds),
        )


def _replace_expected_parameter(
    connection: Connection, stored: StoredTable, wanted: Table, environment: Mapping[str, str]
) -> None:
    """The caller holds the table's row."""
    check_expected_parameter(stored.table, wanted, environment)
    expected = expected_parameter(environment)
    if expected is None:
        return
    name, value = expected
    if not parameters.replace_parameter(
        connection, stored.id, name, expected=value, new=wanted.parameters[name]
    ):
        raise unexpected_parameter(name, "different")


def _cascade_columns(
    unit: UnitOfWork, stored: StoredTable, after: Table
) -> list[tuple[StoredPartition, Partition]]:
    changes = [
        (
            old,
            replace(
                old.partition,
                storage=replace(old.partition.storage, columns=after.storage.columns),
            ),
        )
        for old in partitions.find_all(unit.connection, stored).stored()
    ]
    fresh = tables.require_table(
        unit.connection, after.database_name, after.name, after.catalog_name
    )
    partitions.update_partitions(unit.connection, fresh, changes)
    return changes


def _name_of(table: Table) -> TableName:
    return TableName(table.database_name, table.name, table.catalog_name)


def _require(stored: StoredTable | None, name: TableName) -> StoredTable:
    if stored is None:
        raise InvalidOperationError(f"{DEFAULT_CATALOG}.{name} table not found")
    return stored


def _require_same(connection: Connection, name: TableName, move: _Move) -> None:
    stored = _require(tables.find_table(connection, *name.parts, RowLock.EXCLUSIVE), name)
    if (stored.id, stored.table.storage.location) != (move.table_id, move.source):
        raise changed_meanwhile(stored.table.full_name, "its rename began")


def _check_name_is_free(connection: Connection, database_id: int, wanted: Table) -> None:
    if tables.has_table(connection, database_id, wanted.name):
        raise InvalidOperationError(f"new table {wanted.full_name} already exists")


def _check_replication(old: Database, new: Database) -> None:
    is_source = old.is_replication_source or new.is_replication_source
    if old.name != new.name and is_source:
        raise InvalidOperationError(
            f"a table cannot go from database {old.name} to {new.name}, because one of them is a "
            "source of replication; copy it instead"
        )
