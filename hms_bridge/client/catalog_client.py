"""Databases, tables and partitions over thrift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hms_bridge.client.caller import Caller
from hms_bridge.client.capabilities import (
    PROCESSOR,
    PROCESSOR_CAPABILITIES,
    client_capabilities,
)
from hms_bridge.errors import (
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.model.catalog import DEFAULT_CATALOG, Database, Partition, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import IF_PURGE
from hms_bridge.wire.catalog_names import join_catalog
from hms_bridge.wire.convert_catalog import (
    database_from_struct,
    database_to_struct,
    partition_from_struct,
    partition_to_struct,
    table_from_struct,
    table_to_struct,
    trusted_columns_to_struct,
)
from hms_bridge.wire.structs import Struct, hive

_ALL = "*"
_SHORT_MAX = 32767


class CatalogClient:
    """CatalogStore over thrift, for Hive 2.3 to 4.x."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def create_database(self, database: Database) -> None:
        self._caller.call("create_database", database=database_to_struct(database))

    def get_database(self, name: str, catalog: str = DEFAULT_CATALOG) -> Database:
        full = join_catalog(catalog, name)
        return database_from_struct(
            self._caller.call("get_database", is_repeatable=True, name=full)
        )

    def get_databases(
        self, pattern: str | None = None, catalog: str = DEFAULT_CATALOG
    ) -> tuple[str, ...]:
        full = join_catalog(catalog, _ALL if pattern is None else pattern)
        return tuple(sorted(self._caller.call("get_databases", is_repeatable=True, pattern=full)))

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
            processorCapabilities=list(PROCESSOR_CAPABILITIES),
            processorIdentifier=PROCESSOR,
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
            processorCapabilities=list(PROCESSOR_CAPABILITIES),
            processorIdentifier=PROCESSOR,
        )
        full = join_catalog(catalog, database)
        form, found = self._caller.call_first_known(
            (
                ("get_table_req", {"req": request}),
                ("get_table", {"dbname": full, "tbl_name": name}),
            ),
            is_repeatable=True,
        )
        return table_from_struct(found.table if form == "get_table_req" else found)

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
            found = self._caller.call("get_tables", is_repeatable=True, **arguments)
        else:
            found = self._caller.call(
                "get_tables_by_type", is_repeatable=True, tableType=table_type, **arguments
            )
        return tuple(sorted(found))

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
            processorCapabilities=list(PROCESSOR_CAPABILITIES),
            processorIdentifier=PROCESSOR,
        )
        old = {"dbname": join_catalog(catalog, database), "tbl_names": list(names)}
        try:
            form, found = self._caller.call_first_known(
                (
                    ("get_table_objects_by_name_req", {"req": request}),
                    ("get_table_objects_by_name", old),
                ),
                is_repeatable=True,
            )
        except NoSuchObjectError:
            return ()  # the database
        structs = found.tables if form.endswith("_req") else found
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
        struct, context = table_to_struct(table), _context(environment)
        request = hive.AlterTableRequest(
            catName=table.catalog_name,
            dbName=database,
            tableName=name,
            table=struct,
            environmentContext=context,
            writeId=table.write_id,
            validWriteIdList=valid_write_ids,
            processorCapabilities=list(PROCESSOR_CAPABILITIES),
            processorIdentifier=PROCESSOR,
        )
        old = {
            "dbname": join_catalog(table.catalog_name, database),
            "tbl_name": name,
            "new_tbl": struct,
            "environment_context": context or _context({}),
        }
        with self._missing_table_reported(database, name, table.catalog_name):
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
        context = _purge_context(is_purge) or _context({})
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
        """Raises NoSuchObjectError; MetaError for what must not be truncated."""
        names = None if partition_names is None else list(partition_names)
        place = join_catalog(catalog, database)
        request = hive.TruncateTableRequest(
            dbName=place,
            tableName=name,
            partNames=names,
            writeId=write_id,
            validWriteIdList=valid_write_ids,
            environmentContext=_context(
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

    def add_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        is_if_not_exists: bool = False,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        request = hive.AddPartitionsRequest(
            dbName=database,
            tblName=table,
            parts=[partition_to_struct(partition) for partition in partitions],
            ifNotExists=is_if_not_exists,
            needResult=True,
            catName=catalog,
        )
        with self._missing_table_reported(database, table, catalog):
            found = self._caller.call("add_partitions_req", request=request)
        return _partitions(found.partitions or (), database, table, catalog)

    def get_partition(
        self, database: str, table: str, values: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> Partition:
        found = self._read("get_partition", catalog, database, table, part_vals=list(values))
        return partition_from_struct(found, database, table, catalog)

    def get_partition_names(
        self, database: str, table: str, max_parts: int = -1, catalog: str = DEFAULT_CATALOG
    ) -> tuple[str, ...]:
        limit = _short(max_parts)
        found = self._read("get_partition_names", catalog, database, table, max_parts=limit)
        if not found:
            self.get_table(database, table, catalog)  # Hive answers nothing for unknown ones
        return tuple(_first(sorted(found), max_parts))

    def get_partitions(
        self, database: str, table: str, max_parts: int = -1, catalog: str = DEFAULT_CATALOG
    ) -> tuple[Partition, ...]:
        limit = _short(max_parts)
        found = self._read("get_partitions", catalog, database, table, max_parts=limit)
        return _partitions(_first(found, max_parts), database, table, catalog)

    def get_partitions_by_names(
        self, database: str, table: str, names: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> tuple[Partition, ...]:
        with self._missing_table_reported(database, table, catalog):
            found = self._read(
                "get_partitions_by_names", catalog, database, table, names=list(names)
            )
        if not found:
            self.get_table(database, table, catalog)
        return _partitions(found, database, table, catalog)

    def get_partitions_by_values(
        self,
        database: str,
        table: str,
        prefix: Sequence[str],
        max_parts: int = -1,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        if not prefix:
            return self.get_partitions(database, table, max_parts, catalog)
        found = self._read(
            "get_partitions_ps",
            catalog,
            database,
            table,
            part_vals=list(prefix),
            max_parts=_short(max_parts),
        )
        return _partitions(_first(found, max_parts), database, table, catalog)

    def get_partitions_by_filter(
        self,
        database: str,
        table: str,
        filter_text: str,
        max_parts: int = -1,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        found = self._read(
            "get_partitions_by_filter",
            catalog,
            database,
            table,
            filter=filter_text,
            max_parts=_short(max_parts),
        )
        return _partitions(_first(found, max_parts), database, table, catalog)

    def alter_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        environment: Mapping[str, str] | None = None,
        catalog: str = DEFAULT_CATALOG,
        is_event_each: bool = False,
        valid_write_ids: str | None = None,
    ) -> None:
        """Raises NoSuchObjectError. With ``is_event_each``, each is a call of its own."""
        if is_event_each and len(partitions) > 1:
            for partition in partitions:
                self.alter_partitions(
                    database,
                    table,
                    [partition],
                    environment=environment,
                    catalog=catalog,
                    is_event_each=True,
                    valid_write_ids=valid_write_ids,
                )
            return
        structs = [partition_to_struct(partition) for partition in partitions]
        context = _context(environment)
        write_ids = {partition.write_id for partition in partitions}
        request = hive.AlterPartitionsRequest(
            catName=catalog,
            dbName=database,
            tableName=table,
            partitions=structs,
            environmentContext=context,
            writeId=write_ids.pop() if len(write_ids) == 1 else None,
            validWriteIdList=valid_write_ids,
        )
        old = {
            "db_name": join_catalog(catalog, database),
            "tbl_name": table,
            "new_parts": structs,
            "environment_context": context or _context({}),
        }
        calls: tuple[tuple[str, dict[str, Any]], ...] = (
            ("alter_partitions_req", {"req": request}),
            ("alter_partitions_with_environment_context", old),
        )
        if is_event_each and structs:
            single = {**old, "new_part": structs[0]}
            del single["new_parts"]
            calls = (("alter_partition_with_environment_context", single),)
        try:
            self._caller.call_first_known(calls)
        except InvalidOperationError:
            for partition in partitions:
                self.get_partition(database, table, partition.values, catalog)
            raise

    def drop_partitions(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_purge: bool = False,
        is_if_exists: bool = False,
    ) -> None:
        request = hive.DropPartitionsRequest(
            dbName=database,
            tblName=table,
            parts=hive.RequestPartsSpec(names=list(names)),
            deleteData=is_data_deleted,
            ifExists=is_if_exists,
            environmentContext=_purge_context(is_purge),
            needResult=False,
            catName=catalog,
        )
        self._caller.call("drop_partitions_req", req=request)

    def _read(self, name: str, catalog: str, database: str, table: str, **others: Any) -> Any:
        return self._caller.call(
            name,
            is_repeatable=True,
            db_name=join_catalog(catalog, database),
            tbl_name=table,
            **others,
        )

    @contextmanager
    def _missing_table_reported(self, database: str, table: str, catalog: str) -> Iterator[None]:
        """Where a method can only say "invalid", find out whether the table is missing."""
        try:
            yield
        except (InvalidObjectError, InvalidOperationError):
            self.get_table(database, table, catalog)
            raise


def _context(environment: Mapping[str, str] | None) -> Struct | None:
    if environment is None:
        return None
    return hive.EnvironmentContext(properties=dict(environment))


def _purge_context(is_purge: bool) -> Struct | None:
    return _context({IF_PURGE: "TRUE"}) if is_purge else None


def _partitions(
    structs: Sequence[Struct], database: str, table: str, catalog: str
) -> tuple[Partition, ...]:
    return tuple(partition_from_struct(s, database, table, catalog) for s in structs)


def _short(max_parts: int) -> int:
    """The wire has 16 bits for it; more is asked as all, and cut here."""
    return max_parts if 0 <= max_parts <= _SHORT_MAX else -1


def _first(found: Sequence[Any], max_parts: int) -> Sequence[Any]:
    return found if max_parts < 0 else found[:max_parts]
