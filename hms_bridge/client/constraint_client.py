"""ConstraintStore over thrift."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hms_bridge.client.caller import Caller, UnknownMethodError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.wire.convert_constraint import METHODS, constraint_from_struct
from hms_bridge.wire.structs import Struct, hive

_LISTS = {
    "primaryKeys": "pk_name",
    "foreignKeys": "fk_name",
    "uniqueConstraints": "uk_name",
    **{described.field: described.name for described in METHODS.values()},
}
"""Lists of an answer, and the name of what is in each."""


class ConstraintClient:
    """What a remote metastore's tables have."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def get_column_constraints(
        self, database: str, table: str, catalog: str = DEFAULT_CATALOG
    ) -> tuple[ColumnConstraint, ...]:
        """None for an unknown table, and from a metastore before Hive 3, which has none."""
        return tuple(
            constraint_from_struct(kind, struct)
            for kind in ConstraintKind
            for struct in self._structs(kind, database, table, catalog)
        )

    def _structs(self, kind: ConstraintKind, database: str, table: str, catalog: str) -> list[Any]:
        described = METHODS[kind]
        request = getattr(hive, described.request)(
            catName=catalog, db_name=database, tbl_name=table
        )
        try:
            answer = self._caller.call(described.method, is_repeatable=True, request=request)
        except UnknownMethodError:
            return []
        return getattr(answer, described.field) or []

    def get_constraint_names(self, database: str, table: str) -> tuple[str, ...]:
        """Of one call from Hive 4 on, of one for each kind before; a kind that the metastore does
        not know it does not have."""
        request = hive.AllTableConstraintsRequest(
            dbName=database, tblName=table, catName=DEFAULT_CATALOG
        )
        try:
            found = self._caller.call(
                "get_all_table_constraints", is_repeatable=True, request=request
            )
        except UnknownMethodError:
            answers = list(self._each_kind(database, table))
        else:
            answers = [found.allTableConstraints]
        names = {
            getattr(constraint, name)
            for answer in answers
            for key, name in _LISTS.items()
            for constraint in getattr(answer, key, None) or ()
        } - {None}
        return tuple(sorted(names))

    def _each_kind(self, database: str, table: str) -> Iterator[Struct]:
        catalog = DEFAULT_CATALOG
        requests = {
            "get_primary_keys": hive.PrimaryKeysRequest(
                db_name=database, tbl_name=table, catName=catalog
            ),
            "get_foreign_keys": hive.ForeignKeysRequest(
                foreign_db_name=database, foreign_tbl_name=table, catName=catalog
            ),
            "get_unique_constraints": hive.UniqueConstraintsRequest(
                catName=catalog, db_name=database, tbl_name=table
            ),
            "get_not_null_constraints": hive.NotNullConstraintsRequest(
                catName=catalog, db_name=database, tbl_name=table
            ),
            "get_default_constraints": hive.DefaultConstraintsRequest(
                catName=catalog, db_name=database, tbl_name=table
            ),
            "get_check_constraints": hive.CheckConstraintsRequest(
                catName=catalog, db_name=database, tbl_name=table
            ),
        }
        for name, request in requests.items():
            try:
                yield self._caller.call(name, is_repeatable=True, request=request)
            except UnknownMethodError:
                continue
