"""Functions and materialized views over thrift."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hms_bridge.client.caller import Client
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import DEFAULT_CATALOG, CreationMetadata, Table
from hms_bridge.model.function import Function
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import LockState
from hms_bridge.model.materialization import MaterializationChanges
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.wire.catalog_names import join_catalog
from hms_bridge.wire.convert_catalog import creation_to_struct, table_from_struct
from hms_bridge.wire.convert_function import function_from_struct, function_to_struct

_NO_ANSWER = "without a result"
"""How the caller reports a metastore that answered nothing."""


class FunctionClient(Client):
    """FunctionStore over thrift."""

    def create_function(self, function: Function) -> None:
        self._caller.call("create_function", func=function_to_struct(function))

    def alter_function(
        self, database: str, name: str, function: Function, catalog: str = DEFAULT_CATALOG
    ) -> None:
        self._caller.call(
            "alter_function",
            dbName=join_catalog(catalog, database),
            funcName=name,
            newFunc=function_to_struct(function),
        )

    def drop_function(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> None:
        self._caller.call("drop_function", dbName=join_catalog(catalog, database), funcName=name)

    def get_function(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> Function:
        full = join_catalog(catalog, database)
        function = self._caller.repeat("get_function", dbName=full, funcName=name)
        return function_from_struct(function)

    def get_functions(
        self,
        database: str | None = None,
        pattern: str | None = None,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Function, ...]:
        answer = self._caller.repeat("get_all_functions")
        functions = [function_from_struct(struct) for struct in answer.functions or ()]
        chosen = [
            function
            for function in functions
            if function.catalog_name == catalog
            and (database is None or function.database_name == database.lower())
            and (pattern is None or _is_match(function.name, pattern))
        ]
        return tuple(sorted(chosen, key=lambda function: (function.database_name, function.name)))


class MaterializedViewClient(Client):
    """MaterializedViewStore over thrift."""

    def update_creation_metadata(
        self, database: str, view: str, creation: CreationMetadata, catalog: str = DEFAULT_CATALOG
    ) -> None:
        self._caller.call(
            "update_creation_metadata",
            catName=catalog,
            dbname=database,
            tbl_name=view,
            creation_metadata=creation_to_struct(creation),
        )

    def get_materialized_views(
        self, database: str | None = None, catalog: str = DEFAULT_CATALOG
    ) -> tuple[Table, ...]:
        name = "get_all_materialized_view_objects_for_rewriting"
        views = [table_from_struct(struct) for struct in self._caller.repeat(name)]
        chosen = [
            view
            for view in views
            if view.catalog_name == catalog
            and (database is None or view.database_name == database.lower())
        ]
        return tuple(sorted(chosen, key=lambda view: (view.database_name, view.name)))

    def get_materialization_changes(
        self, creation: CreationMetadata, valid_txns: ValidTxnList
    ) -> MaterializationChanges | None:
        try:
            answer = self._caller.repeat(
                "get_materialization_invalidation_info",
                creation_metadata=creation_to_struct(creation),
                validTxnList=valid_txns.format(),
            )
        except MetaError as error:
            if _NO_ANSWER in str(error):
                return None
            raise
        return MaterializationChanges(
            has_updates_or_deletes=bool(answer.sourceTablesUpdateDeleteModified),
            has_compactions=bool(answer.sourceTablesCompacted),
        )

    def lock_materialization_rebuild(self, database: str, view: str, txn_id: TxnId) -> bool:
        lock = self._caller.call(
            "get_lock_materialization_rebuild", dbName=database, tableName=view, txnId=txn_id
        )
        return bool(lock.state == LockState.ACQUIRED.number)

    def heartbeat_materialization_rebuild(self, database: str, view: str, txn_id: TxnId) -> bool:
        kept: bool = self._caller.repeat(
            "heartbeat_lock_materialization_rebuild", dbName=database, tableName=view, txnId=txn_id
        )
        return kept


def _is_match(name: str, pattern: str) -> bool:
    texts = pattern.lower().replace(".*", "*").split("|")
    return any(fnmatchcase(name, text.replace("[", "[[]")) for text in texts)
