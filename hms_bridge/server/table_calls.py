"""Tables and views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hms_bridge.errors import (
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.model.catalog import Table, TableType
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.model.ids import WriteId
from hms_bridge.model.privilege import ObjectKind, Securable
from hms_bridge.model.properties import DO_NOT_UPDATE, EXPECTED_KEY, EXPECTED_VALUE
from hms_bridge.model.statistics import HIVE, StatisticsQuery
from hms_bridge.model.statistics_state import accurate_columns, seen_table
from hms_bridge.model.target import TableName
from hms_bridge.server.access_types import access_type
from hms_bridge.server.answers import answers
from hms_bridge.server.constraint_calls import require_few
from hms_bridge.server.names import (
    context_of,
    environment_of,
    is_purge,
    limit_of,
    pattern_of,
    table_name,
    table_of,
)
from hms_bridge.server.privilege_calls import bounded
from hms_bridge.server.served_metastore import ServedMetastore
from hms_bridge.server.table_filter import parse_table_filter
from hms_bridge.server.table_projection import only_fields, table_fields
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.convert_catalog import (
    columns_to_structs,
    table_to_struct,
    take_trusted_columns,
)
from hms_bridge.wire.convert_constraint import METHODS, constraints_from_structs
from hms_bridge.wire.convert_privilege import grants_from_set
from hms_bridge.wire.convert_statistics import object_to_struct
from hms_bridge.wire.received import received_table
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive

_TYPES = frozenset(kind.value for kind in TableType)
_INSERT_ONLY_TABLES = 2
_ACCESS_TYPE = 1
"""Hive's GetTablesExtRequestFields.ACCESS_TYPE."""
_RAW_METADATA = "MANAGERAWMETADATA"
"""Hive translates nothing for such a client."""


class TableCalls:
    """Tables. ``is_capability_checked``: refuse to show insert-only tables to clients that do
    not say that they understand them; they would read aborted rows."""

    def __init__(self, store: ServedMetastore, is_capability_checked: bool) -> None:
        self._store = store
        self._is_capability_checked = is_capability_checked

    @answers("get_table")
    def get_table(self, args: Struct) -> Struct:
        return table_to_struct(self._get(table_of(args), capabilities=None))

    @answers("get_table_req", of="req")
    def get_table_req(self, request: Struct) -> Struct:
        """One by name, to a client that names what it understands."""
        name = table_of(request)
        table = seen_table(self._get(name, request.capabilities), request.validWriteIdList)
        struct = _with_access(table, request.processorCapabilities)
        if request.getColumnStats:
            self._put_statistics(struct, table, request)
        return hive.GetTableResult(table=struct)

    @answers("get_table_objects_by_name")
    def get_tables_by_names(self, args: Struct) -> list[Struct]:
        catalog, database = split_catalog(args.dbname)
        names = [name.lower() for name in args.tbl_names or ()]
        tables = self._store.get_tables_by_names(database or "", names, catalog)
        return [table_to_struct(table) for table in self._readable(tables, None)]

    @answers("get_table_objects_by_name_req", of="req")
    def get_tables_by_names_req(self, request: Struct) -> Struct:
        """Those of several that exist, by names or by a pattern."""
        in_name, database = split_catalog(given(request.dbName, "dbName"))
        database, catalog = database or "", (request.catName or in_name).lower()
        fields = table_fields(request.projectionSpec)
        if request.tblNames is not None:
            names: Iterable[str] = [name.lower() for name in request.tblNames]
        elif request.tablesPattern is not None:
            pattern = pattern_of(request.tablesPattern)
            names = self._store.get_tables(database, pattern, None, catalog)
        else:
            raise InvalidOperationError(f"{database} cannot find null tables; send their names")
        tables = self._store.get_tables_by_names(database, tuple(names), catalog)
        if not tables:
            self._store.get_database(database, catalog)  # says so if that is the reason
        readable = self._readable(tables, request.capabilities)
        structs = [_with_access(table, request.processorCapabilities) for table in readable]
        if fields is not None:
            structs = [only_fields(struct, fields) for struct in structs]
        return hive.GetTablesResult(tables=structs)

    @answers("get_all_tables")
    def get_all_tables(self, args: Struct) -> list[str]:
        return self._names(args.db_name, None, None)

    @answers("get_tables")
    def get_tables(self, args: Struct) -> list[str]:
        return self._names(args.db_name, args.pattern, None)

    @answers("get_tables_by_type")
    def get_tables_by_type(self, args: Struct) -> list[str]:
        kind = given(args.tableType, "tableType")
        if kind not in _TYPES:
            raise MetaError(
                f"{kind!r} is no type of tables; send one of {', '.join(sorted(_TYPES))}"
            )
        return self._names(args.db_name, args.pattern, kind)

    @answers("get_table_meta")
    def get_table_meta(self, args: Struct) -> list[Struct]:
        """Names, types and comments over several databases."""
        catalog, pattern = split_catalog(args.db_patterns)
        types = frozenset(args.tbl_types or ())
        metas = []
        for database in self._store.get_databases(pattern_of(pattern), catalog):
            names = self._store.get_tables(database, pattern_of(args.tbl_patterns), None, catalog)
            for table in self._store.get_tables_by_names(database, names, catalog):
                if not types or table.type in types:
                    metas.append(_table_meta(table))
        return metas

    @answers("get_tables_ext", of="req")
    def get_tables_with_access(self, request: Struct) -> list[Struct]:
        """Names that a pattern matches, and what the client may do with each. A client without
        capabilities gets none, as from Hive. Those that a table requires are left out: none are
        (access_types.py)."""
        in_name, database = split_catalog(given(request.database, "database"))
        catalog = (request.catalog or in_name).lower()
        capabilities = request.processorCapabilities or ()
        if not capabilities or _RAW_METADATA in capabilities:
            return []
        pattern = pattern_of(request.tableNamePattern)
        names = self._store.get_tables(database or "", pattern, None, catalog)
        limit = limit_of(request.limit)
        chosen = names if limit < 0 else names[:limit]
        tables = self._store.get_tables_by_names(database or "", chosen, catalog)
        is_access_asked = bool((request.requestedFields or 0) & _ACCESS_TYPE)
        return [
            hive.ExtendedTableInfo(
                tblName=table.name,
                accessType=_access_of(table, capabilities) if is_access_asked else None,
            )
            for table in tables
        ]

    @answers("get_table_names_by_filter")
    def get_table_names_by_filter(self, args: Struct) -> list[str]:
        """Names of tables whose owner, access time or parameters fulfil a condition."""
        catalog, database = split_catalog(args.dbname)
        if not database:
            raise NoSuchObjectError("DB name is null or empty")
        if args.filter is None:
            raise InvalidOperationError(f"{database} cannot apply a null filter; send a text")
        condition = parse_table_filter(args.filter)
        self._store.get_database(database or "", catalog)
        names = self._store.get_tables(database or "", None, None, catalog)
        tables = self._store.get_tables_by_names(database or "", names, catalog)
        limit = limit_of(args.max_tables)
        matching = [table.name for table in tables if condition(table)]
        return matching if limit < 0 else matching[:limit]

    @answers("get_fields", "get_fields_with_environment_context")
    def get_fields(self, args: Struct) -> list[Struct]:
        table = self._get_plain(table_of(args))
        return columns_to_structs(table.storage.columns)

    @answers("get_schema", "get_schema_with_environment_context")
    def get_schema(self, args: Struct) -> list[Struct]:
        """The columns, then those of partitions."""
        table = self._get_plain(table_of(args))
        return columns_to_structs((*table.storage.columns, *table.partition_columns))

    @answers("get_fields_req", of="req")
    def get_fields_req(self, request: Struct) -> Struct:
        table = self._get_plain(table_of(request))
        return hive.GetFieldsResponse(fields=columns_to_structs(table.storage.columns))

    @answers("get_schema_req", of="req")
    def get_schema_req(self, request: Struct) -> Struct:
        table = self._get_plain(table_of(request))
        columns = (*table.storage.columns, *table.partition_columns)
        return hive.GetSchemaResponse(fields=columns_to_structs(columns))

    @answers("create_table", "create_table_with_environment_context")
    def create_table(self, args: Struct) -> None:
        self._create(args.tbl, context_of(args))

    @answers("create_table_with_constraints")
    def create_table_with_constraints(self, args: Struct) -> None:
        self._create(args.tbl, None, args)

    @answers("create_table_req", of="request")
    def create_table_req(self, request: Struct) -> None:
        self._create(request.table, request.envContext, request)

    @answers("translate_table_dryrun", of="request")
    def translate_table(self, request: Struct) -> Struct:
        """What create_table would make of a table: nothing else."""
        table: Struct = given(request.table, "table")
        return table

    @answers("alter_table", "alter_table_with_environment_context")
    def alter_table(self, args: Struct) -> None:
        self._alter(table_of(args), args.new_tbl, environment_of(context_of(args)))

    @answers("alter_table_with_cascade")
    def alter_table_with_cascade(self, args: Struct) -> None:
        """Replace one, and the columns of its partitions."""
        environment = {"CASCADE": "true"} if args.cascade else {}
        self._alter(table_of(args), args.new_tbl, environment)

    @answers("alter_table_req", of="req")
    def alter_table_req(self, request: Struct) -> Struct:
        """Replace one; the write id of the statement may come with it."""
        environment = dict(environment_of(request.environmentContext))
        if request.expectedParameterKey is not None:
            environment[EXPECTED_KEY] = request.expectedParameterKey
        if request.expectedParameterValue is not None:
            environment[EXPECTED_VALUE] = request.expectedParameterValue
        table = given(request.table, "table")
        if request.writeId is not None and request.writeId > 0:
            table.writeId = request.writeId
        self._alter(table_of(request), table, environment, request.validWriteIdList)
        return hive.AlterTableResponse()

    @answers("drop_table", "drop_table_with_environment_context")
    def drop_table(self, args: Struct) -> None:
        self._drop(table_name(args.dbname, args.name), args.deleteData, context_of(args))

    @answers("drop_table_req", of="dropTableReq")
    def drop_table_req(self, request: Struct) -> None:
        self._drop(table_of(request), request.deleteData, request.envContext)

    @answers("truncate_table")
    def truncate_table(self, args: Struct) -> None:
        """Empty one, or some of its partitions, with their files."""
        name = table_of(args)
        self._store.truncate_table(name.database, name.table, args.partNames, catalog=name.catalog)

    @answers("truncate_table_req", of="req")
    def truncate_table_req(self, request: Struct) -> Struct:
        """Empty one, or some of its partitions, in a transaction."""
        name = table_of(request)
        environment = environment_of(request.environmentContext)
        self._store.truncate_table(
            name.database,
            name.table,
            request.partNames,
            write_id=None if request.writeId is None else WriteId(request.writeId),
            valid_write_ids=request.validWriteIdList,
            is_data_deleted=environment.get("truncateSkipDataDeletion", "").lower() != "true",
            catalog=name.catalog,
        )
        return hive.TruncateTableResponse()

    def _put_statistics(self, struct: Any, table: Table, request: Any) -> None:
        engine = request.engine or HIVE
        query = StatisticsQuery(
            database_name=table.database_name,
            table_name=table.name,
            catalog_name=table.catalog_name,
            columns=accurate_columns(table.parameters),
            engine=engine,
            valid_write_ids=request.validWriteIdList,
        )
        for statistics in self._store.get_column_statistics(query):
            struct.colStats = object_to_struct(
                statistics,
                database=table.database_name,
                table=table.name,
                catalog=table.catalog_name,
                engine=engine,
            )

    def _create(
        self, struct: Struct | None, context: Struct | None, request: Struct | None = None
    ) -> None:
        sent = given(struct, "the new table")
        try:
            self._create_received(sent, context, request)
        except NoSuchObjectError as error:  # its database, or a key's table
            raise InvalidObjectError(str(error)) from error

    def _create_received(
        self, sent: Struct, context: Struct | None, request: Struct | None
    ) -> None:
        trusted = take_trusted_columns(sent)
        table = received_table(sent)
        if environment_of(context).get(DO_NOT_UPDATE, "").lower() == "true":
            # Hive takes this word from either place; as a parameter it is not stored.
            table = replace(table, parameters={**table.parameters, DO_NOT_UPDATE: "true"})
        constraints = () if request is None else _constraints_of(table, request)
        grants = bounded(grants_from_set(sent.privileges, Securable(kind=ObjectKind.TABLE)))
        if grants:
            self._store.create_constrained_table(
                table, constraints, trusted_columns=trusted, grants=grants
            )
        elif constraints:
            self._store.create_constrained_table(table, constraints, trusted_columns=trusted)
        else:
            self._store.create_table(table, trusted_columns=trusted)

    def _names(
        self, database: str | None, pattern: str | None, table_type: str | None
    ) -> list[str]:
        catalog, name = split_catalog(given(database, "the database's name"))
        names = self._store.get_tables(name or "", pattern_of(pattern), table_type, catalog)
        return list(names)

    def _get_plain(self, name: TableName) -> Table:
        return self._store.get_table(name.database, name.table, name.catalog)

    def _get(self, name: TableName, capabilities: Struct | None) -> Table:
        table = self._get_plain(name)
        self._readable((table,), capabilities)
        return table

    def _readable(self, tables: Iterable[Table], capabilities: Struct | None) -> tuple[Table, ...]:
        readable = tuple(tables)
        understood = () if capabilities is None else capabilities.values or ()
        if self._is_capability_checked and _INSERT_ONLY_TABLES not in understood:
            for table in readable:
                if table.is_insert_only:
                    raise MetaError(
                        f"{table.full_name} is an insert-only transactional table, and the "
                        "client does not say that it can read such tables (capability "
                        "INSERT_ONLY_TABLES); use another client, or set "
                        "metastore.client.capability.check to false on the server"
                    )
        return readable

    def _alter(
        self,
        name: TableName,
        struct: Struct | None,
        environment: Mapping[str, str],
        valid_write_ids: str | None = None,
    ) -> None:
        sent: Any = given(struct, "the new table")
        table = received_table(sent)
        if sent.catName is not None and table.catalog_name != name.catalog:
            raise InvalidOperationError(
                f"Tables cannot be moved between catalogs, old catalog {name.catalog}, new "
                f"catalog {table.catalog_name}"
            )
        table = replace(table, catalog_name=name.catalog)
        self._store.alter_table(
            name.database,
            name.table,
            table,
            environment=environment,
            valid_write_ids=valid_write_ids,
        )

    def _drop(self, name: TableName, is_deleted: bool | None, context: Struct | None) -> None:
        self._store.drop_table(
            name.database,
            name.table,
            catalog=name.catalog,
            is_data_deleted=bool(is_deleted),
            is_purge=is_purge(context),
        )


def _with_access(table: Table, capabilities: Sequence[str] | None) -> Struct:
    """The table, with what a client that names its capabilities may do with it."""
    struct: Any = table_to_struct(table)
    if capabilities:
        struct.accessType = _access_of(table, capabilities)
    answer: Struct = struct
    return answer


def _access_of(table: Table, capabilities: Sequence[str]) -> int | None:
    """None also for a table that says itself what it needs."""
    return None if "OBJCAPABILITIES" in table.parameters else access_type(table, capabilities)


def _table_meta(table: Table) -> Struct:
    return hive.TableMeta(
        dbName=table.database_name,
        tableName=table.name,
        tableType=table.type,
        comments=table.parameters.get("comment"),
        catName=table.catalog_name,
        ownerName=table.owner,
        ownerType=int(table.owner_type),
    )


def _constraints_of(table: Table, request: Struct) -> tuple[ColumnConstraint, ...]:
    """Those that a new table is to have. Raises MetaError for one of another table, and for more
    than a table can have."""
    constraints: list[ColumnConstraint] = []
    for kind, method in METHODS.items():
        structs = getattr(request, method.field) or ()
        require_few(method.field, structs)
        for of_table in constraints_from_structs(kind, structs):
            named = (of_table.database_name or table.database_name).lower()
            own = (table.database_name.lower(), table.name.lower())
            if (named, (of_table.table_name or table.name).lower()) != own:
                raise MetaError(
                    f"{method.field} is of {named}.{of_table.table_name}, but {'.'.join(own)} is "
                    "made; add it with a call of its own (ALTER TABLE … ADD CONSTRAINT)"
                )
            constraints += of_table.constraints
    return tuple(constraints)
