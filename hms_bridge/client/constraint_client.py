"""ConstraintStore over thrift."""

from __future__ import annotations

from typing import Any

from hms_bridge.client.caller import Caller, UnknownMethodError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.wire.convert_constraint import METHODS, constraint_from_struct
from hms_bridge.wire.structs import hive


class ConstraintClient:
    """What writers of a remote metastore's tables have to keep."""

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
