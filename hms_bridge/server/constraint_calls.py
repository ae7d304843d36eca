"""Constraints that writers keep. They are made by a Hive on the same database, and told here."""

from __future__ import annotations

from hms_bridge.metadata_store import ConstraintStore
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.constraint import ConstraintKind
from hms_bridge.server.answers import answers
from hms_bridge.wire.convert_constraint import METHODS, constraint_to_struct
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


class ConstraintCalls:
    """NOT NULL, DEFAULT and CHECK; keys promise nothing that anybody enforces."""

    def __init__(self, store: ConstraintStore) -> None:
        self._store = store

    @answers("get_not_null_constraints")
    def not_null(self, args: Struct) -> Struct:
        """Of one table."""
        return self._answer(ConstraintKind.NOT_NULL, args)

    @answers("get_default_constraints")
    def default(self, args: Struct) -> Struct:
        """Of one table."""
        return self._answer(ConstraintKind.DEFAULT, args)

    @answers("get_check_constraints")
    def check(self, args: Struct) -> Struct:
        """Of one table."""
        return self._answer(ConstraintKind.CHECK, args)

    @answers("get_all_table_constraints")
    def all_kinds(self, args: Struct) -> Struct:
        """Of one table."""
        request = given(args.request, "request")
        found = self._structs(request.catName, request.dbName, request.tblName)
        told = {METHODS[kind].field: structs for kind, structs in found.items()}
        return hive.AllTableConstraintsResponse(
            allTableConstraints=hive.SQLAllTableConstraints(
                primaryKeys=[], foreignKeys=[], uniqueConstraints=[], **told
            )
        )

    def _answer(self, kind: ConstraintKind, args: Struct) -> Struct:
        request = given(args.request, "request")
        found = self._structs(request.catName, request.db_name, request.tbl_name)
        described = METHODS[kind]
        answer: Struct = getattr(hive, described.response)(**{described.field: found[kind]})
        return answer

    def _structs(
        self, catalog: str | None, database: str | None, table: str | None
    ) -> dict[ConstraintKind, list[Struct]]:
        key = (
            given_name(database, "db_name"),
            given_name(table, "tbl_name"),
            (catalog or DEFAULT_CATALOG).lower(),
        )
        found: dict[ConstraintKind, list[Struct]] = {kind: [] for kind in ConstraintKind}
        for constraint in self._store.get_column_constraints(*key):
            found[constraint.kind].append(constraint_to_struct(constraint, *key))
        return found
