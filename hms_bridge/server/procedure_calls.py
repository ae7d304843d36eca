"""Stored procedures and packages of HPL/SQL."""

from __future__ import annotations

from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_objects import ServedProcedures
from hms_bridge.wire.convert_procedure import (
    package_from_struct,
    package_to_struct,
    procedure_from_struct,
    procedure_to_struct,
)
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct


class ProcedureCalls(Calls[ServedProcedures]):
    """Texts of databases; their names keep their case."""

    @answers("create_stored_procedure", of="proc")
    def put_procedure(self, struct: Struct) -> None:
        self._store.put_procedure(procedure_from_struct(struct))

    @answers("get_stored_procedure", of="request")
    def get_procedure(self, request: Struct) -> Struct:
        name = given(request.procName, "procName")
        procedure = self._store.get_procedure(_database(request), name, _catalog(request))
        return procedure_to_struct(procedure)

    @answers("drop_stored_procedure", of="request")
    def drop_procedure(self, request: Struct) -> None:
        name = given(request.procName, "procName")
        self._store.drop_procedure(_database(request), name, _catalog(request))

    @answers("get_all_stored_procedures", of="request")
    def procedures(self, request: Struct) -> list[str]:
        return list(self._store.get_procedure_names(_database(request), _catalog(request)))

    @answers("add_package", of="request")
    def put_package(self, request: Struct) -> None:
        self._store.put_package(package_from_struct(request))

    @answers("find_package", of="request")
    def get_package(self, request: Struct) -> Struct:
        name = given(request.packageName, "packageName")
        package = self._store.get_package(_database(request), name, _catalog(request))
        return package_to_struct(package)

    @answers("drop_package", of="request")
    def drop_package(self, request: Struct) -> None:
        name = given(request.packageName, "packageName")
        self._store.drop_package(_database(request), name, _catalog(request))

    @answers("get_all_packages", of="request")
    def packages(self, request: Struct) -> list[str]:
        return list(self._store.get_package_names(_database(request), _catalog(request)))


def _database(request: Struct) -> str:
    return given_name(request.dbName, "dbName")


def _catalog(request: Struct) -> str:
    return request.catName or DEFAULT_CATALOG
