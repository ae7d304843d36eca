"""Verbs of permanent functions (Hive: HMSHandler.create_function and its kin)."""

from __future__ import annotations

from dataclasses import replace

from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import databases, functions
from hms_bridge.catalog.databases import StoredDatabase
from hms_bridge.catalog.functions import StoredFunction
from hms_bridge.catalog.limits import check_function, is_plain
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import AlreadyExistsError, InvalidObjectError, MetaError, NoSuchObjectError
from hms_bridge.hooks import changes
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.function import Function
from hms_bridge.notification import object_events
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads_whole, writes


def _create_function(unit: UnitOfWork, function: Function) -> None:
    wanted = _checked(function)
    database = databases.require_database(
        unit.connection, wanted.database_name, wanted.catalog_name, RowLock.EXCLUSIVE
    )
    if _find(unit, wanted) is not None:
        raise AlreadyExistsError(f"Function {wanted.name} already exists")
    complete = replace(wanted, create_time=unit.now_seconds)
    functions.insert_function(unit.connection, database.id, complete)
    # The event has the name as it was sent, as Hive's does.
    as_sent = replace(complete, name=function.name)
    unit.events.append(object_events.function_created(as_sent, unit.now_seconds))


def _alter_function(
    unit: UnitOfWork, database: str, name: str, function: Function, catalog: str = DEFAULT_CATALOG
) -> None:
    wanted = _checked(function)
    key = _key(catalog, database, name)
    place = (wanted.catalog_name, wanted.database_name)
    owner = _hold_databases(unit, key[:2], place)[place]
    old = functions.find_function(unit.connection, *key)
    if old is None:
        raise MetaError(f"function {key[2]} doesn't exist")
    if owner is None:
        raise databases.no_database(wanted.database_name, wanted.catalog_name)
    taken = _find(unit, wanted)
    if taken is not None and taken.id != old.id:
        raise AlreadyExistsError(f"Function {wanted.name} already exists")
    functions.update_function(unit.connection, old, owner.id, wanted)
    unit.points.append(changes.function_altered(old.function, wanted))


def _hold_databases(
    unit: UnitOfWork, *names: tuple[str, str]
) -> dict[tuple[str, str], StoredDatabase | None]:
    """Those of these catalogs and names: their functions stay as they are. In one order, so that
    nobody waits in a ring."""
    return {
        (catalog, name): databases.find_database(unit.connection, name, catalog, RowLock.EXCLUSIVE)
        for catalog, name in sorted(set(names))
    }


def _drop_function(unit: UnitOfWork, key: tuple[str, str, str]) -> None:
    _hold_databases(unit, key[:2])
    stored = functions.find_function(unit.connection, *key)
    if stored is None:
        raise NoSuchObjectError(f"Function {key[2]} does not exist")
    functions.delete_functions(unit.connection, [stored])
    unit.events.append(object_events.function_dropped(stored.function, unit.now_seconds))


def _named_by_dumps(connection: Connection, key: tuple[str, str, str]) -> tuple[str, ...]:
    """Files of a function of a replication source (Hive archives them: HMSHandler.drop_function;
    docs/hive/replication.md §28)."""
    catalog, database, _ = key
    stored = databases.find_database(connection, database, catalog)
    function = functions.find_function(connection, *key)
    if stored is None or function is None or not stored.database.is_replication_source:
        return ()
    return tuple(resource.uri for resource in function.function.resources)


def _get_function(
    connection: Connection, database: str, name: str, catalog: str = DEFAULT_CATALOG
) -> Function:
    key = _key(catalog, database, name)
    stored = functions.find_function(connection, *key)
    if stored is None:
        raise NoSuchObjectError(f"Function {key[1]}.{key[2]} does not exist")
    return stored.function


def _get_functions(
    connection: Connection,
    database: str | None = None,
    pattern: str | None = None,
    catalog: str = DEFAULT_CATALOG,
) -> tuple[Function, ...]:
    lowered = None if database is None else database.lower()
    stored_functions = functions.find_functions(connection, catalog.lower(), lowered, pattern)
    return tuple(stored.function for stored in stored_functions)


class FunctionVerbs(VerbFamily):
    """The FunctionStore."""

    create_function = writes(_create_function)
    alter_function = writes(_alter_function)
    get_function = reads_whole(sql(_get_function))
    get_functions = reads_whole(sql(_get_functions))

    def drop_function(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> None:
        key = _key(catalog, database, name)
        context = ArchiveContext(cause=ArchiveCause.DROP_FUNCTION, database=key[1])
        # Before it is dropped: whoever may remove its files then finds earlier dumps served.
        for uri in self._transactions.read(lambda c: _named_by_dumps(c, key)):
            self._file_work.copies.archive_copy(uri, context)
        self._transactions.write(lambda unit: _drop_function(unit, key))


def _key(catalog: str, database: str, name: str) -> tuple[str, str, str]:
    return catalog.lower(), database.lower(), name.lower()


def _find(unit: UnitOfWork, function: Function) -> StoredFunction | None:
    return functions.find_function(
        unit.connection, function.catalog_name, function.database_name, function.name
    )


def _checked(function: Function) -> Function:
    """With names in lower case. Raises InvalidObjectError for what cannot be stored."""
    if not is_plain(function.name):
        raise InvalidObjectError(f"{function.name} is not a valid object name")
    lowered = replace(
        function,
        name=function.name.lower(),
        database_name=function.database_name.lower(),
        catalog_name=function.catalog_name.lower(),
    )
    check_function(lowered)
    return lowered
