"""Verbs of databases."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import catalogs, databases, functions, tables
from hms_bridge.catalog.databases import StoredDatabase
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidOperationError,
    MetaError,
)
from hms_bridge.hooks import points
from hms_bridge.model.catalog import (
    DEFAULT_CATALOG,
    DEFAULT_DATABASE,
    Database,
    PrincipalType,
    TableType,
)
from hms_bridge.model.txn import AbortReason
from hms_bridge.notification import events, object_events
from hms_bridge.repl.target_objects import is_fenced
from hms_bridge.service.aborts import log_abort
from hms_bridge.service.drops import Looked
from hms_bridge.service.foundation import VerbFamily, normal_database
from hms_bridge.service.replica_gate import require_place_kept
from hms_bridge.service.unit_of_work import UnitOfWork, reads, reads_whole
from hms_bridge.txn import abort, replication, resources

_LOG = logging.getLogger(__name__)


def _get_database(connection: Connection, name: str, catalog: str = DEFAULT_CATALOG) -> Database:
    return databases.require_database(connection, name.lower(), catalog.lower()).database


class DatabaseVerbs(VerbFamily):
    """create, get, alter, drop of databases (CatalogStore)."""

    get_database = reads_whole(sql(_get_database))
    get_databases = reads(sql(databases.database_names))

    def create_database(self, database: Database) -> None:
        normal = normal_database(database)
        catalog, existing = self._transactions.read_whole(
            lambda c: (
                catalogs.require_catalog(c, normal.catalog_name),
                databases.find_database(c, normal.name, normal.catalog_name),
            )
        )
        if existing is not None:
            raise AlreadyExistsError(f"Database {normal.name} already exists")
        wanted = self._with_locations(normal, catalog.location)
        location = wanted.location or ""
        places = {location, self._roots.managed_location(wanted)}
        for place in sorted(places):
            self._file_work.settle(place, is_below_left=True)
        made = self._files.make_directories(sorted(places))
        try:
            self._transactions.write(lambda unit: _insert_database(unit, wanted))
        except BaseException:
            self._files.undo_made(made)
            raise

    def _with_locations(self, database: Database, catalog: str | None = None) -> Database:
        """``catalog``: the directory of its catalog, where a new one needs it."""
        location = database.location or self._roots.database_location(database, catalog)
        managed = database.managed_location
        what = f"location of database '{database.name}'"
        return replace(
            database,
            location=self._roots.uri(location, what),
            managed_location=self._roots.uri(managed, what) if managed else None,
        )

    def alter_database(self, name: str, database: Database) -> None:
        catalog = database.catalog_name.lower()

        def work(unit: UnitOfWork) -> None:
            stored = databases.require_database(
                unit.connection, name.lower(), catalog, RowLock.EXCLUSIVE
            )
            before = stored.database
            after = self._with_locations(
                normal_database(
                    replace(
                        database,
                        name=before.name,
                        catalog_name=catalog,
                        description=database.description or before.description,
                        location=database.location or before.location,
                        managed_location=database.managed_location or before.managed_location,
                        owner_type=database.owner_type or before.owner_type,
                        create_time=before.create_time,
                    )
                )
            )
            require_place_kept(before, after)
            databases.update_database(unit.connection, stored, after)
            unit.events.append(events.database_altered(before, after, unit.now_seconds))
            if not is_fenced(before):  # a failback, which notes its event as a load does
                unit.points += points.load_ended(before, after)

        self._transactions.write(work)

    def drop_database(
        self,
        name: str,
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_cascade: bool = False,
    ) -> None:
        name, catalog = name.lower(), catalog.lower()
        if (name, catalog) == (DEFAULT_DATABASE, DEFAULT_CATALOG):
            raise MetaError(f"Can not drop {name} database in catalog {catalog}")
        looked = None
        if is_data_deleted and is_cascade:
            names = self._transactions.read(lambda c: tables.table_names(c, name, catalog=catalog))
            looked = self._drops.look_at_tables(name, names, catalog)

        def work(unit: UnitOfWork) -> tuple[Database, Sequence[FileTask]]:
            stored = databases.require_database(unit.connection, name, catalog, RowLock.EXCLUSIVE)
            if stored.database.is_replication_source:
                raise InvalidOperationError(
                    f"can not drop database {name} which is a source of replication; "
                    f"end that first: repl end {name}"
                )
            return stored.database, self._delete_database(
                unit, stored, looked=looked, is_cascade=is_cascade
            )

        database, tasks = self._transactions.write(work)
        self._file_work.carry_out(tasks)
        if is_data_deleted:
            # Files that no table of the database owned are not ours to delete.
            for place in self._directories_of(database):
                if not self._files.remove_if_empty(place):
                    _LOG.warning("%s of the dropped database %s stays", place, database.name)

    def _delete_database(
        self, unit: UnitOfWork, stored: StoredDatabase, *, looked: Looked | None, is_cascade: bool
    ) -> Sequence[FileTask]:
        database = stored.database
        tasks: list[FileTask] = []
        content = databases.content_of(unit.connection, stored)
        if content is not None and not is_cascade:
            raise InvalidOperationError(
                f"Database {database.name} is not empty. One or more {content} exist."
            )
        _drop_functions(unit, database)
        for table in _names_in_order(unit, database):
            tasks += self._drops.drop_table(unit, database, table, looked=looked, is_purge=False)
        databases.delete_database(unit.connection, stored)
        _end_replays(unit, database)
        if database.catalog_name == DEFAULT_CATALOG:
            resources.forget_database(unit.connection, database.name)
        unit.events.append(events.database_dropped(database, unit.now_seconds))
        return tasks

    def _directories_of(self, database: Database) -> tuple[str, ...]:
        places = {database.location or "", self._roots.managed_location(database)}
        return tuple(sorted(places - {"", self._roots.managed, self._roots.external}))


def _insert_database(unit: UnitOfWork, database: Database) -> None:
    catalogs.require_catalog(unit.connection, database.catalog_name, RowLock.SHARED)
    if databases.find_database(unit.connection, database.name, database.catalog_name):
        raise AlreadyExistsError(f"Database {database.name} already exists")
    stored = replace(database, create_time=database.create_time or unit.now_seconds)
    databases.insert_database(unit.connection, _with_owner_type(stored))
    unit.events.append(events.database_created(stored, unit.now_seconds))


def _with_owner_type(database: Database) -> Database:
    """An owner of no type is a user (Hive: ObjectStore.createDatabase); the event says what was
    asked for."""
    if database.owner_name is None or database.owner_type is not None:
        return database
    return replace(database, owner_type=PrincipalType.USER)


def _end_replays(unit: UnitOfWork, database: Database) -> None:
    """Nobody goes on with them, and when they time out after days they would break off the
    next replica of that name (HIVE-28772)."""
    if database.catalog_name != DEFAULT_CATALOG:
        return
    replays = replication.replays_into(unit.connection, database.name)
    log_abort(unit, abort.abort_txns(unit, replays, AbortReason.REPL_DEFAULT))


def _drop_functions(unit: UnitOfWork, database: Database) -> None:
    """Before the tables, each with its event (HMSHandler.drop_database_core of Hive 4.2)."""
    dropped = functions.find_functions(unit.connection, database.catalog_name, database.name)
    functions.delete_functions(unit.connection, dropped)
    unit.events += [
        object_events.function_dropped(stored.function, unit.now_seconds) for stored in dropped
    ]


def _names_in_order(unit: UnitOfWork, database: Database) -> Sequence[str]:
    """Materialized views first: a table that one reads cannot be dropped."""
    views = tables.table_names(
        unit.connection,
        database.name,
        table_type=TableType.MATERIALIZED_VIEW.value,
        catalog=database.catalog_name,
    )
    others = tables.table_names(unit.connection, database.name, catalog=database.catalog_name)
    return (*views, *(name for name in others if name not in views))
