"""Verbs of permanent functions (Hive: HMSHandler.create_function and its kin)."""

from __future__ import annotations

import re
from dataclasses import replace

from hms_bridge.catalog import databases, functions
from hms_bridge.catalog.functions import StoredFunction
from hms_bridge.catalog.limits import check_function
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import AlreadyExistsError, InvalidObjectError, MetaError, NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.function import Function
from hms_bridge.notification import object_events
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork

_NAME = re.compile(r"\w+", re.ASCII)
"""MetaStoreUtils.validateName: a function's name stands in statements without quotes."""


class FunctionVerbs(VerbFamily):
    """The FunctionStore."""

    def create_function(self, function: Function) -> None:
        """Raises AlreadyExistsError, InvalidObjectError, NoSuchObjectError (its database)."""
        _check_name(function.name)
        wanted = _normal(function)
        check_function(wanted)

        def work(unit: UnitOfWork) -> None:
            database = databases.require_database(
                unit.connection, wanted.database_name, wanted.catalog_name, RowLock.EXCLUSIVE
            )
            if _find(unit, wanted) is not None:
                raise AlreadyExistsError(f"Function {wanted.name} already exists")
            complete = replace(wanted, create_time=unit.now_seconds)
            functions.insert_function(unit.connection, database.id, complete)
            # The event has the name as it was sent, as Hive's does.
            told = replace(complete, name=function.name)
            unit.events.append(object_events.function_created(told, unit.now_seconds))

        self._transactions.write(work)

    def alter_function(
        self, database: str, name: str, function: Function, catalog: str = DEFAULT_CATALOG
    ) -> None:
        """Replace it, and its name and database too. Raises MetaError for an unknown one,
        AlreadyExistsError, InvalidObjectError, NoSuchObjectError (its new database)."""
        _check_name(function.name)
        wanted = _normal(function)
        check_function(wanted)
        key = _key(catalog, database, name)

        def work(unit: UnitOfWork) -> None:
            old = functions.find_function(unit.connection, *key)
            if old is None:
                raise MetaError(f"function {key[2]} doesn't exist")
            owner = databases.require_database(
                unit.connection, wanted.database_name, wanted.catalog_name, RowLock.EXCLUSIVE
            )
            taken = _find(unit, wanted)
            if taken is not None and taken.id != old.id:
                raise AlreadyExistsError(f"Function {wanted.name} already exists")
            functions.update_function(unit.connection, old, owner.id, wanted)

        self._transactions.write(work)

    def drop_function(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> None:
        """Raises NoSuchObjectError."""
        key = _key(catalog, database, name)

        def work(unit: UnitOfWork) -> None:
            found = functions.find_function(unit.connection, *key)
            if found is None:
                raise NoSuchObjectError(f"Function {key[2]} does not exist")
            functions.delete_functions(unit.connection, [found])
            unit.events.append(object_events.function_dropped(found.function, unit.now_seconds))

        self._transactions.write(work)

    def get_function(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> Function:
        """Raises NoSuchObjectError."""
        key = _key(catalog, database, name)
        found = self._transactions.read(lambda c: functions.find_function(c, *key))
        if found is None:
            raise NoSuchObjectError(f"Function {key[1]}.{key[2]} does not exist")
        return found.function

    def get_functions(
        self,
        database: str | None = None,
        pattern: str | None = None,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Function, ...]:
        """Of one database or of all, sorted; none for an unknown database."""
        lowered = None if database is None else database.lower()
        found = self._transactions.read(
            lambda c: functions.find_functions(c, catalog.lower(), lowered, pattern)
        )
        return tuple(stored.function for stored in found)


def _key(catalog: str, database: str, name: str) -> tuple[str, str, str]:
    return catalog.lower(), database.lower(), name.lower()


def _find(unit: UnitOfWork, function: Function) -> StoredFunction | None:
    return functions.find_function(
        unit.connection, function.catalog_name, function.database_name, function.name
    )


def _normal(function: Function) -> Function:
    return replace(
        function,
        name=function.name.lower(),
        database_name=function.database_name.lower(),
        catalog_name=function.catalog_name.lower(),
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidObjectError(f"{name} is not a valid object name")
