"""Databases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hms_bridge.errors import InvalidOperationError, MetaError, NoSuchObjectError
from hms_bridge.metastore import CatalogStore
from hms_bridge.model.properties import is_true
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import pattern_of
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.convert_catalog import database_to_struct
from hms_bridge.wire.received import received_database
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive

_SOFT_DELETE = "soft_delete"
_REMOTE = 2
"""Hive's DatabaseType of a database over a data connector."""


class DatabaseCalls(Calls[CatalogStore]):
    """Databases of all catalogs."""

    @answers("create_database", of="database")
    def create_database(self, database: Struct) -> None:
        _require_native(database.type, database.connector_name)
        if database.name is None:
            raise MetaError("Database name cannot be null.")
        self._store.create_database(received_database(database))

    @answers("create_database_req", of="createDatabaseRequest")
    def create_database_req(self, request: Struct) -> None:
        _require_native(request.type, request.dataConnectorName)
        database = hive.Database(
            name=request.databaseName,
            description=request.description,
            locationUri=request.locationUri,
            parameters=request.parameters,
            ownerName=request.ownerName,
            ownerType=request.ownerType,
            catalogName=request.catalogName,
            createTime=request.createTime,
            managedLocationUri=request.managedLocationUri,
            privileges=request.privileges,
            remote_dbname=request.remote_dbname,
        )
        self._store.create_database(received_database(database))

    @answers("get_database", of="name")
    def get_database(self, full_name: str) -> Struct:
        catalog, name = split_catalog(full_name)
        return database_to_struct(self._store.get_database(name or "", catalog))

    @answers("get_database_req", of="request")
    def get_database_req(self, request: Struct) -> Struct:
        catalog, name = split_catalog(given(request.name, "name"))
        catalog = (request.catalogName or catalog).lower()
        return database_to_struct(self._store.get_database(name or "", catalog))

    @answers("get_databases")
    def get_databases(self, args: Struct) -> list[str]:
        catalog, pattern = split_catalog(args.pattern)
        return list(self._store.get_databases(pattern_of(pattern), catalog))

    @answers("get_databases_req", of="request")
    def get_database_objects(self, request: Struct) -> Struct:
        catalog, pattern = split_catalog(request.pattern)
        catalog = (request.catalogName or catalog).lower()
        names = self._store.get_databases(pattern_of(pattern), catalog)
        databases = [self._store.get_database(name, catalog) for name in names]
        return hive.GetDatabaseObjectsResponse(databases=[database_to_struct(d) for d in databases])

    @answers("get_all_databases")
    def get_all_databases(self, _: Struct) -> list[str]:
        return list(self._store.get_databases())

    @answers("alter_database")
    def alter_database(self, args: Struct) -> None:
        self._alter(args.dbname, args.db)

    @answers("alter_database_req", of="alterDbReq")
    def alter_database_req(self, request: Struct) -> None:
        self._alter(request.oldDbName, request.newDb)

    @answers("drop_database")
    def drop_database(self, args: Struct) -> None:
        catalog, name = split_catalog(given(args.name, "name"))
        self._store.drop_database(
            name or "",
            catalog=catalog,
            is_data_deleted=bool(args.deleteData),
            is_cascade=bool(args.cascade),
        )

    @answers("drop_database_req", of="req")
    def drop_database_req(self, request: Struct) -> None:
        """Drop it; an unknown one is an error unless the client does not mind."""
        in_name, name = split_catalog(given(request.name, "name"))
        catalog = (request.catalogName or in_name).lower()
        try:
            if request.softDelete and request.deleteData:
                self._require_no_soft_drop(name or "", catalog)
            self._store.drop_database(
                name or "",
                catalog=catalog,
                is_data_deleted=bool(request.deleteData),
                is_cascade=bool(request.cascade),
            )
        except NoSuchObjectError:
            if not request.ignoreUnknownDb:
                raise

    def _require_no_soft_drop(self, name: str, catalog: str) -> None:
        """Raises InvalidOperationError for a table whose files readers without locks may still read
        after its drop (Hive: TxnUtils.isTableSoftDeleteEnabled; docs/hive/metastore.md §49)."""
        names = self._store.get_tables(name, catalog=catalog)
        for table in self._store.get_tables_by_names(name, names, catalog):
            if table.is_transactional and is_true(table.parameters, _SOFT_DELETE):
                raise InvalidOperationError(
                    f"{table.full_name} has {_SOFT_DELETE}=true, and its files would go at once, "
                    "while readers without locks may need them: soft drops are not offered; drop "
                    "the database without softDelete once nobody reads it"
                )

    def _alter(self, old_name: str | None, struct: Struct | None) -> None:
        """A database without a name keeps the one that it has. Its catalog is that of the old name,
        whatever the new database says (Hive: HMSHandler.alter_database)."""
        catalog, name = split_catalog(given(old_name, "the database's name"))
        sent: Any = given(struct, "the new database")
        if not sent.name:
            sent.name = old_name
        database = replace(received_database(sent), catalog_name=catalog)
        self._store.alter_database(name or "", database)


def _require_native(kind: int | None, connector: str | None) -> None:
    """Raises MetaError for a remote database: made here, it would be an empty one of the warehouse,
    because only Hive's metastore asks the other system for its tables."""
    if kind == _REMOTE or connector:
        raise MetaError("databases over data connectors are not kept; make one without a connector")
