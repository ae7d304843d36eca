"""Permanent functions."""

from __future__ import annotations

from hms_bridge.metadata_store import FunctionStore
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import pattern_of
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.convert_function import function_from_struct, function_to_struct
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive


class FunctionCalls(Calls[FunctionStore]):
    """Functions of databases."""

    @answers("create_function", of="func")
    def create_function(self, function: Struct) -> None:
        """Java clients always say of what type it and its owner are, and Hive insists on it."""
        for field in ("functionName", "dbName", "ownerType", "functionType"):
            given(getattr(function, field), f"Function.{field}")
        self._store.create_function(function_from_struct(function))

    @answers("alter_function")
    def alter_function(self, args: Struct) -> None:
        catalog, database = split_catalog(given(args.dbName, "dbName"))
        function = function_from_struct(given(args.newFunc, "newFunc"))
        name = given(args.funcName, "funcName").lower()
        self._store.alter_function(database or "", name, function, catalog)

    @answers("drop_function")
    def drop_function(self, args: Struct) -> None:
        catalog, database = split_catalog(given(args.dbName, "dbName"))
        self._store.drop_function(database or "", given(args.funcName, "funcName").lower(), catalog)

    @answers("get_function")
    def get_function(self, args: Struct) -> Struct:
        catalog, database = split_catalog(given(args.dbName, "dbName"))
        name = given(args.funcName, "funcName").lower()
        return function_to_struct(self._store.get_function(database or "", name, catalog))

    @answers("get_functions")
    def get_names(self, args: Struct) -> list[str]:
        catalog, database = split_catalog(given(args.dbName, "dbName"))
        functions = self._store.get_functions(database or "", pattern_of(args.pattern), catalog)
        return [function.name for function in functions]

    @answers("get_functions_req", of="request")
    def get_several(self, request: Struct) -> Struct:
        """The names of those that a pattern matches, or all of them."""
        in_name, database = split_catalog(given(request.dbName, "dbName"))
        catalog = (request.catalogName or in_name).lower()
        functions = self._store.get_functions(database or "", pattern_of(request.pattern), catalog)
        if request.returnNames or request.returnNames is None:
            return hive.GetFunctionsResponse(
                function_names=[function.name for function in functions]
            )
        return hive.GetFunctionsResponse(
            functions=[function_to_struct(function) for function in functions]
        )

    @answers("get_all_functions")
    def get_all(self, _: Struct) -> Struct:
        functions = [function_to_struct(function) for function in self._store.get_functions()]
        return hive.GetAllFunctionsResponse(functions=functions)
