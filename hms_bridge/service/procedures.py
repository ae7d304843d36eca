"""Verbs of stored procedures and packages (Hive: HMSHandler.create_stored_procedure, add_package
and their kin)."""

from __future__ import annotations

from typing import TypeVar

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import databases, procedures
from hms_bridge.catalog.limits import check_procedure
from hms_bridge.catalog.procedures import PACKAGES_KEPT, PROCEDURES, Kept
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.hooks import changes
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.procedure import Package, StoredProcedure
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads, writes

T = TypeVar("T", StoredProcedure, Package)


def _put(unit: UnitOfWork, kept: Kept[T], record: T) -> None:
    check_procedure(record.name, record.owner_name)
    catalog, database = record.catalog_name.lower(), record.database_name.lower()
    # Alone, so that of two who make one of a name the second replaces it.
    stored = databases.require_database(unit.connection, database, catalog, RowLock.EXCLUSIVE)
    there = procedures.find(unit.connection, kept, catalog, database, record.name)
    key = None if there is None else there[0]
    procedures.put(unit.connection, kept, stored.id, key, record, unit.now_seconds)
    unit.points.append(changes.procedure_changed("put", record))


def _require(
    connection: Connection, kept: Kept[T], database: str, name: str, catalog: str
) -> tuple[int, T]:
    stored = procedures.find(connection, kept, catalog.lower(), database.lower(), name)
    if stored is None:
        raise NoSuchObjectError(f"{database.lower()}.{name} does not exist")
    return stored


def _drop(unit: UnitOfWork, kept: Kept[T], database: str, name: str, catalog: str) -> None:
    """One that is not there is none afterwards, either (Hive: ObjectStore.dropPackage)."""
    # Alone, as who puts one does, else that one would be lost.
    databases.find_database(unit.connection, database.lower(), catalog.lower(), RowLock.EXCLUSIVE)
    there = procedures.find(unit.connection, kept, catalog.lower(), database.lower(), name)
    if there is not None:
        key, dropped = there
        procedures.remove(unit.connection, kept, key)
        unit.points.append(changes.procedure_changed("drop", dropped))


def _put_procedure(unit: UnitOfWork, procedure: StoredProcedure) -> None:
    _put(unit, PROCEDURES, procedure)


def _get_procedure(
    connection: Connection, database: str, name: str, catalog: str = DEFAULT_CATALOG
) -> StoredProcedure:
    return _require(connection, PROCEDURES, database, name, catalog)[1]


def _drop_procedure(
    unit: UnitOfWork, database: str, name: str, catalog: str = DEFAULT_CATALOG
) -> None:
    _drop(unit, PROCEDURES, database, name, catalog)


def _procedure_names(
    connection: Connection, database: str, catalog: str = DEFAULT_CATALOG
) -> tuple[str, ...]:
    return procedures.names(connection, PROCEDURES, catalog.lower(), database.lower())


def _put_package(unit: UnitOfWork, package: Package) -> None:
    _put(unit, PACKAGES_KEPT, package)


def _get_package(
    connection: Connection, database: str, name: str, catalog: str = DEFAULT_CATALOG
) -> Package:
    return _require(connection, PACKAGES_KEPT, database, name, catalog)[1]


def _drop_package(
    unit: UnitOfWork, database: str, name: str, catalog: str = DEFAULT_CATALOG
) -> None:
    _drop(unit, PACKAGES_KEPT, database, name, catalog)


def _package_names(
    connection: Connection, database: str, catalog: str = DEFAULT_CATALOG
) -> tuple[str, ...]:
    return procedures.names(connection, PACKAGES_KEPT, catalog.lower(), database.lower())


class ProcedureVerbs(VerbFamily):
    """The ServedProcedures."""

    put_procedure = writes(_put_procedure)
    get_procedure = reads(sql(_get_procedure))
    drop_procedure = writes(_drop_procedure)
    get_procedure_names = reads(sql(_procedure_names))
    put_package = writes(_put_package)
    get_package = reads(sql(_get_package))
    drop_package = writes(_drop_package)
    get_package_names = reads(sql(_package_names))
