"""Permanent functions."""

from __future__ import annotations

from hms_bridge.metadata_store import FunctionStore
from hms_bridge.server.answers import answers
from hms_bridge.server.names import pattern_of
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.convert_function import function_from_struct, function_to_struct
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


class FunctionCalls:
    """Functions of databases."""

    def __init__(self, store: FunctionStore) -> None:
        self._store = store

    @answers("create_function")
    def create_function(self, args: Struct) -> None:
        self._store.create_function(function_from_struct(given(args.func, "func")))

    @answers("alter_function")
    def alter_function(self, args: Struct) -> None:
        catalog, database = split_catalog(given(args.dbName, "dbName"))
        function = function_from_struct(given(args.newFunc, "newFunc"))
        name = given_name(args.funcName, "funcName")
        self._store.alter_function(database or "", name, function, catalog)

    @answers("drop_function")
    def drop_function(self, args: Struct) -> None:
        catalog, database = split_catalog(given(args.dbName, "dbName"))
        name = given_name(args.funcName, "funcName")
        self._store.drop_function(database or "", name, catalog)

    @answers("get_function")
    def get_function(self, args: Struct) -> Struct:
        catalog, database = split_catalog(given(args.dbName, "dbName"))
        name = given_name(args.funcName, "funcName")
        return function_to_struct(self._store.get_function(database or "", name, catalog))

    @answers("get_functions")
    def get_names(self, args: Struct) -> list[str]:
        """Names that a pattern matches."""
        catalog, database = split_catalog(args.dbName)
        found = self._store.get_functions(database or "", pattern_of(args.pattern), catalog)
        return [function.name for function in found]

    @answers("get_functions_req")
    def get_several(self, args: Struct) -> Struct:
        """Those that a pattern matches, or their names only."""
        request = given(args.request, "request")
        in_name, database = split_catalog(given(request.dbName, "dbName"))
        catalog = (request.catalogName or in_name).lower()
        found = self._store.get_functions(database or "", pattern_of(request.pattern), catalog)
        if request.returnNames:
            return hive.GetFunctionsResponse(function_names=[function.name for function in found])
        return hive.GetFunctionsResponse(
            functions=[function_to_struct(function) for function in found]
        )

    @answers("get_all_functions")
    def get_all(self, _: Struct) -> Struct:
        """Those of all databases."""
        functions = [function_to_struct(function) for function in self._store.get_functions()]
        return hive.GetAllFunctionsResponse(functions=functions)
