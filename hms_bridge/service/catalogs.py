"""Verbs of catalogs (Hive: HMSHandler.create_catalog and its kin; docs/hive/metastore.md §33)."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import catalogs, databases
from hms_bridge.catalog.limits import check_catalog, is_plain
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
)
from hms_bridge.hooks import changes
from hms_bridge.model.catalog import DEFAULT_CATALOG, DEFAULT_DATABASE, Catalog, Database
from hms_bridge.notification import events
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads


def _get_catalog(connection: Connection, name: str) -> Catalog:
    return catalogs.require_catalog(connection, name.lower())


def _insert(unit: UnitOfWork, catalog: Catalog) -> None:
    """With its default database, for which alone an event is logged."""
    if catalogs.find_catalog(unit.connection, catalog.name) is not None:
        raise _already_exists(catalog)
    catalogs.insert_catalog(unit.connection, replace(catalog, create_time=unit.now_seconds))
    unit.points.append(changes.catalog_changed("create", catalog))
    default = Database(
        name=DEFAULT_DATABASE,
        catalog_name=catalog.name,
        description=f"Default database for catalog {catalog.name}",
        location=catalog.location,
        create_time=unit.now_seconds,
    )
    databases.insert_database(unit.connection, default)
    unit.events.append(events.database_created(default, unit.now_seconds))


def _delete(unit: UnitOfWork, name: str) -> tuple[str, ...]:
    """The directories that it had."""
    catalog = catalogs.require_catalog(unit.connection, name, RowLock.EXCLUSIVE)
    if set(databases.database_names(unit.connection, catalog=name)) - {DEFAULT_DATABASE}:
        raise InvalidOperationError(
            f"There are non-default databases in the catalog {name} so it cannot be dropped."
        )
    places = {catalog.location}
    stored = databases.find_database(unit.connection, DEFAULT_DATABASE, name, RowLock.EXCLUSIVE)
    if stored is not None:
        if databases.content_of(unit.connection, stored) is not None:
            raise InvalidOperationError(
                f"There are still objects in the default database for catalog {name}"
            )
        databases.delete_database(unit.connection, stored)
        unit.events.append(events.database_dropped(stored.database, unit.now_seconds))
        places.add(stored.database.location or catalog.location)
    catalogs.delete_catalog(unit.connection, name)
    unit.points.append(changes.catalog_changed("drop", catalog))
    return tuple(sorted(places, reverse=True))


def _already_exists(catalog: Catalog) -> AlreadyExistsError:
    return AlreadyExistsError(f"Catalog {catalog.name} already exists")


class CatalogVerbs(VerbFamily):
    """The ServedCatalogs."""

    get_catalogs = reads(sql(catalogs.catalog_names))
    get_catalog = reads(sql(_get_catalog))

    def create_catalog(self, catalog: Catalog) -> None:
        wanted = self._normal(catalog)
        if not is_plain(wanted.name):
            raise InvalidObjectError(f"{catalog.name} is not a valid catalog name")
        if not wanted.location:
            raise InvalidObjectError("You must specify a path for the catalog")
        if self._transactions.read(lambda c: catalogs.find_catalog(c, wanted.name)) is not None:
            raise _already_exists(wanted)
        is_made = self._files.make_directory(wanted.location)
        try:
            self._transactions.write(lambda unit: _insert(unit, wanted))
        except BaseException:
            if is_made:
                self._files.undo_made([wanted.location])
            raise

    def alter_catalog(self, name: str, catalog: Catalog) -> None:
        wanted = self._normal(catalog)
        if wanted.name != name.lower():
            raise InvalidOperationError(
                f"catalog {name.lower()} cannot be renamed to {wanted.name}; make a new one"
            )

        def work(unit: UnitOfWork) -> None:
            before = catalogs.require_catalog(unit.connection, wanted.name, RowLock.EXCLUSIVE)
            after = replace(
                before,
                location=wanted.location or before.location,
                description=wanted.description or before.description,
            )
            catalogs.update_catalog(unit.connection, after)
            unit.points.append(changes.catalog_changed("alter", after))

        self._transactions.write(work)

    def drop_catalog(self, name: str) -> None:
        lowered = name.lower()
        if lowered == DEFAULT_CATALOG:
            raise MetaError(f"Can not drop {DEFAULT_CATALOG} catalog")
        for place in self._transactions.write(lambda unit: _delete(unit, lowered)):
            self._files.remove_if_empty(place)

    def _normal(self, catalog: Catalog) -> Catalog:
        check_catalog(catalog)
        location = catalog.location
        if location:
            location = self._roots.uri(location, f"location of catalog '{catalog.name}'")
        return replace(catalog, name=catalog.name.lower(), location=location)
