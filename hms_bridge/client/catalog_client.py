"""Databases and tables over thrift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hms_bridge.client.caller import Client
from hms_bridge.client.capabilities import client_capabilities, said_of_us
from hms_bridge.errors import (
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.model.catalog import DEFAULT_CATALOG, Database, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import IF_PURGE
from hms_bridge.wire.catalog_names import join_catalog
from hms_bridge.wire.convert_catalog import (
    database_from_struct,
    database_to_struct,
    table_from_struct,
    table_to_struct,
    trusted_columns_to_struct,
)
from hms_bridge.wire.structs import Struct, hive

_ALL = "*"


class CatalogClient(Client):
    """What CatalogStore has of databases and tables; all of it asks Hive 2.3 to 4.x."""

    def create_database(self, database: Database) -> None:
        self._caller.call("create_database", database=database_to_struct(database))

    def get_database(self, name: str, catalog: str = DEFAULT_CATALOG) -> Database:
        full = join_catalog(catalog, name)
        return database_from_struct(self._caller.repeat("get_database", name=full))

    def get_databases(
        self, pattern: str | None = None, catalog: str = DEFAULT_CATALOG
    ) -> tuple[str, ...]:
        full = join_catalog(catalog, _ALL if pattern is None else pattern)
        return tuple(sorted(self._caller.repeat("get_databases", pattern=full)))

    def alter_database(self, name: str, database: Database) -> None:
        full = join_catalog(database.catalog_name, name)
        self._caller.call("alter_database", dbname=full, db=database_to_struct(database))

    def drop_database(
        self,
        name: str,
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_cascade: bool = False,
    ) -> None:
        self._caller.call(
            "drop_database",
            name=join_catalog(catalog, name),
            deleteData=is_data_deleted,
            cascade=is_cascade,
        )

    def create_table(self, table: Table, *, trusted_columns: Sequence[str] = ()) -> None:
        struct: Any = table_to_struct(table)
        if trusted_columns:
            struct.dictionary = trusted_columns_to_struct(trusted_columns)
        request = hive.CreateTableRequest(
            table=struct,
            **said_of_us(),
        )
        try:
            self._caller.call_first_known(
                (
                    ("create_table_req", {"request": request}),
                    ("create_table_with_environment_context", {"tbl": struct}),
                )
            )
        except InvalidObjectError:
            self.get_database(table.database_name, table.catalog_name)  # Hive's class for that
            raise

    def get_table(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> Table:
        request = hive.GetTableRequest(
            dbName=database,
            tblName=name,
            catName=catalog,
            capabilities=client_capabilities(),
            **said_of_us(),
        )
        full = join_catalog(catalog, database)
        form, answer = self._caller.call_first_known(
            (
                ("get_table_req", {"req": request}),
                ("get_table", {"dbname": full, "tbl_name": name}),
            ),
            is_repeatable=True,
        )
        return table_from_struct(answer.table if form == "get_table_req" else answer)

    def get_tables(
        self,
        database: str,
        pattern: str | None = None,
        table_type: str | None = None,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[str, ...]:
        arguments = {
            "db_name": join_catalog(catalog, database),
            "pattern": _ALL if pattern is None else pattern,
        }
        if table_type is None:
            names = self._caller.repeat("get_tables", **arguments)
        else:
            names = self._caller.repeat("get_tables_by_type", tableType=table_type, **arguments)
        return tuple(sorted(names))

    def get_tables_by_names(
        self, database: str, names: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> tuple[Table, ...]:
        if not names:
            return ()
        request = hive.GetTablesRequest(
            dbName=database,
            tblNames=list(names),
            catName=catalog,
            capabilities=client_capabilities(),
            **said_of_us(),
        )
        old = {"dbname": join_catalog(catalog, database), "tbl_names": list(names)}
        try:
            form, answer = self._caller.call_first_known(
                (
                    ("get_table_objects_by_name_req", {"req": request}),
                    ("get_table_objects_by_name", old),
                ),
                is_repeatable=True,
            )
        except NoSuchObjectError:
            return ()  # the database
        structs = answer.tables if form.endswith("_req") else answer
        return tuple(table_from_struct(struct) for struct in structs)

    def alter_table(
        self,
        database: str,
        name: str,
        table: Table,
        *,
        environment: Mapping[str, str] | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        struct, context = table_to_struct(table), context_of(environment)
        request = hive.AlterTableRequest(
            catName=table.catalog_name,
            dbName=database,
            tableName=name,
            table=struct,
            environmentContext=context,
            writeId=table.write_id,
            validWriteIdList=valid_write_ids,
            **said_of_us(),
        )
        old = {
            "dbname": join_catalog(table.catalog_name, database),
            "tbl_name": name,
            "new_tbl": struct,
            "environment_context": context or context_of({}),
        }
        with self.missing_table_reported(database, name, table.catalog_name):
            self._caller.call_first_known(
                (
                    ("alter_table_req", {"req": request}),
                    ("alter_table_with_environment_context", old),
                )
            )

    def drop_table(
        self,
        database: str,
        name: str,
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_purge: bool = False,
    ) -> None:
        context = purge_context(is_purge) or context_of({})
        old = {
            "dbname": join_catalog(catalog, database),
            "name": name,
            "deleteData": is_data_deleted,
            "environment_context": context,
        }
        request = hive.DropTableRequest(
            catalogName=catalog,
            dbName=database,
            tableName=name,
            deleteData=is_data_deleted,
            envContext=context,
        )
        self._caller.call_first_known(
            (
                ("drop_table_with_environment_context", old),
                ("drop_table_req", {"dropTableReq": request}),
            )
        )

    def truncate_table(
        self,
        database: str,
        name: str,
        partition_names: Sequence[str] | None = None,
        *,
        write_id: WriteId | None = None,
        valid_write_ids: str | None = None,
        is_data_deleted: bool = True,
        catalog: str = DEFAULT_CATALOG,
    ) -> None:
        names = None if partition_names is None else list(partition_names)
        place = join_catalog(catalog, database)
        request = hive.TruncateTableRequest(
            dbName=place,
            tableName=name,
            partNames=names,
            writeId=write_id,
            validWriteIdList=valid_write_ids,
            environmentContext=context_of(
                {"truncateSkipDataDeletion": str(not is_data_deleted).lower()}
            ),
        )
        old = {"dbName": place, "tableName": name, "partNames": names}
        forms: list[tuple[str, dict[str, Any]]] = [("truncate_table_req", {"req": request})]
        if write_id is None and is_data_deleted:
            forms.append(("truncate_table", old))
        try:
            self._caller.call_first_known(forms)
        except MetaError:
            self.get_table(database, name, catalog)  # says so if that is the reason
            raise

    @contextmanager
    def missing_table_reported(self, database: str, table: str, catalog: str) -> Iterator[None]:
        """Where a method can only say "invalid", find out whether the table is missing."""
        try:
            yield
        except (InvalidObjectError, InvalidOperationError):
            self.get_table(database, table, catalog)
            raise


def context_of(environment: Mapping[str, str] | None) -> Struct | None:
    """What a caller says besides; None for nothing."""
    if environment is None:
        return None
    return hive.EnvironmentContext(properties=dict(environment))


def purge_context(is_purge: bool) -> Struct | None:
    """That files are not to be moved to the trash."""
    return context_of({IF_PURGE: "TRUE"}) if is_purge else None
