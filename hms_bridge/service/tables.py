"""Verbs of tables and views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hms_bridge.acid.names import DirectoryName
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import databases, tables, view_creation
from hms_bridge.catalog.column_types import check_column_types
from hms_bridge.catalog.places import Owner
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.table_rules import with_acid_properties
from hms_bridge.errors import AlreadyExistsError, NoSuchObjectError
from hms_bridge.model.catalog import (
    DEFAULT_CATALOG,
    KEEP_FILES,
    WRITE_IDS_ABOVE,
    Database,
    Table,
    asks_to_keep,
    stored_parameters,
)
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.model.privilege import Grant
from hms_bridge.model.properties import LAST_EVENT
from hms_bridge.notification import events
from hms_bridge.service import constraints as constraints_of
from hms_bridge.service import file_statistics
from hms_bridge.service import privileges as privileges_of
from hms_bridge.service.foundation import VerbFamily, normal_table, with_ddl_time
from hms_bridge.service.replica_gate import is_kept_by_loads
from hms_bridge.service.unit_of_work import UnitOfWork, reads, reads_whole
from hms_bridge.txn import late_writers


def _get_table(
    connection: Connection, database: str, name: str, catalog: str = DEFAULT_CATALOG
) -> Table:
    stored = tables.require_table(connection, database.lower(), name.lower(), catalog.lower())
    return view_creation.with_creation(connection, stored).table


def _get_tables_by_names(
    connection: Connection, database: str, names: Sequence[str], catalog: str = DEFAULT_CATALOG
) -> tuple[Table, ...]:
    lowered = [name.lower() for name in names]
    stored_tables = tables.find_tables(connection, database.lower(), lowered, catalog.lower())
    return tuple(view_creation.with_creation(connection, stored).table for stored in stored_tables)


class TableVerbs(VerbFamily):
    """create, get, drop of tables (CatalogStore)."""

    get_table = reads_whole(sql(_get_table))
    get_tables = reads(sql(tables.table_names))
    get_tables_by_names = reads_whole(sql(_get_tables_by_names))

    def create_table(self, table: Table, *, trusted_columns: Sequence[str] = ()) -> None:
        self.create_constrained_table(table, (), trusted_columns=trusted_columns)

    def create_constrained_table(
        self,
        table: Table,
        constraints: Sequence[ColumnConstraint],
        *,
        trusted_columns: Sequence[str] = (),
        grants: Sequence[Grant] = (),
    ) -> None:
        is_kept = asks_to_keep(table.parameters)
        request = replace(table, parameters=stored_parameters(table.parameters))
        wanted = with_acid_properties(normal_table(request))
        check_column_types(wanted)
        database = self._database_for(wanted)
        wanted = self._with_location(wanted, database)
        location = wanted.storage.location
        is_made, files = False, []
        there: Sequence[DirectoryName] = ()
        if location is not None and not wanted.is_view:
            if is_kept:
                self._file_work.keep(location)
            else:
                self._file_work.settle(location)
            is_made = self._files.make_directory(location, is_external=wanted.is_external)
            is_loaded = LAST_EVENT in wanted.parameters and is_kept_by_loads(database.parameters)
            if is_loaded and not (is_made or is_kept or wanted.is_external):
                self._files.require_none(location, wanted.full_name)
            counted = file_statistics.NO_FILES if is_made else self._files.count(location)
            parameters = file_statistics.of_created(wanted, counted, trusted_columns)
            wanted = replace(wanted, parameters=parameters)
            if not is_made and not wanted.is_external and not wanted.is_transactional:
                is_source = database.is_replication_source
                files = self._files.references(location, is_source=is_source)
            if not is_made and not is_kept and wanted.is_in_txn_tables:
                there = self._files.acid_directories(location)

        def work(unit: UnitOfWork) -> None:
            self._insert_table(unit, wanted, files, there, is_kept=is_kept)
            constraints_of.add_with_table(unit, wanted, constraints)
            privileges_of.add_with_table(unit, wanted, grants)

        try:
            self._transactions.write(work)
        except BaseException:
            if is_made and location is not None:
                self._files.undo_made([location])
            raise

    def _database_for(self, table: Table) -> Database:
        """Its database; refused before a directory is made if the table is there already."""
        database, existing = self._transactions.read_whole(
            lambda c: (
                databases.find_database(c, table.database_name, table.catalog_name),
                tables.find_table(c, table.database_name, table.name, table.catalog_name),
            )
        )
        if database is None:
            raise NoSuchObjectError(f"database {table.catalog_name}.{table.database_name}")
        if existing is not None:
            raise _already_exists(table)
        return database.database

    def _with_location(self, table: Table, database: Database) -> Table:
        if table.is_view:
            return table
        location = table.storage.location or self._roots.table_location(
            database, table.name, is_external=table.is_external
        )
        location = self._roots.directory(location, f"location of table '{table.full_name}'")
        return replace(table, storage=replace(table.storage, location=location))

    def _insert_table(
        self,
        unit: UnitOfWork,
        table: Table,
        files: Sequence[str],
        there: Sequence[DirectoryName],
        *,
        is_kept: bool,
    ) -> None:
        stored = databases.require_database(
            unit.connection, table.database_name, table.catalog_name, RowLock.SHARED
        )
        if tables.has_table(unit.connection, stored.id, table.name):
            raise _already_exists(table)
        complete = replace(
            table,
            create_time=unit.now_seconds,
            parameters=with_ddl_time(
                file_statistics.without_count_request(table.parameters), unit.now_seconds
            ),
        )
        place = None if table.is_view else table.storage.location
        if place is not None:
            self._file_work.require_settled(unit.connection, place)
        key = tables.insert_table(unit.connection, stored.id, complete)
        # Only now: of many who make one table, the others must hear that it exists.
        if place is not None:
            owner = Owner(table=replace(complete, id=key))
            self._files.rule.require_unshared(unit.connection, table, [place], owner)
        if complete.creation is not None and complete.is_materialized_view:
            view_creation.put_creation(
                unit.connection, complete, complete.creation, self._clock.now_ms()
            )
        # Its event shows dumps that rows came with it, and with which write id it does not begin.
        shown = {KEEP_FILES: "true"} if is_kept else {}
        if complete.is_in_txn_tables:
            is_of_load = is_kept_by_loads(stored.database.parameters)
            late = late_writers.take_over(unit, complete, is_of_load=is_of_load)
            if not is_of_load:
                late_writers.require_own(unit.connection, complete, there)
            shown |= {} if late is None else {WRITE_IDS_ABOVE: str(late)}
        created = replace(complete, id=key, parameters={**complete.parameters, **shown})
        unit.events.append(events.table_created(created, unit.now_seconds, files))

    def drop_table(
        self,
        database: str,
        name: str,
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_purge: bool = False,
    ) -> None:
        looked = None
        if is_data_deleted:
            looked = self._drops.look_at_tables(database.lower(), [name.lower()], catalog.lower())

        def work(unit: UnitOfWork) -> Sequence[FileTask]:
            stored = databases.require_database(
                unit.connection, database.lower(), catalog.lower(), RowLock.SHARED
            )
            return self._drops.drop_table(
                unit,
                stored.database,
                name.lower(),
                looked=looked,
                is_purge=is_purge,
            )

        self._file_work.carry_out(self._transactions.write(work))


def _already_exists(table: Table) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"Table {table.catalog_name}.{table.database_name}.{table.name} already exists"
    )
