"""Constraints: they are listed, made and dropped. Only writers of rows keep what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hms_bridge.errors import MetaError
from hms_bridge.metadata_store import ConstraintStore
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.constraint import ConstraintKind
from hms_bridge.server.answers import Calls, answers
from hms_bridge.wire.convert_constraint import (
    METHODS,
    constraint_to_struct,
    constraints_from_structs,
)
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive

CONSTRAINED_COLUMNS_MAX = 1000
"""Of constraints in a call: what one table can have, and more."""


def require_few(field: str, structs: Sequence[Struct]) -> None:
    """Raises MetaError for more constrained columns in a field than a table can have."""
    if len(structs) > CONSTRAINED_COLUMNS_MAX:
        raise MetaError(
            f"{field} has {len(structs)} entries; send at most {CONSTRAINED_COLUMNS_MAX}"
        )


def _answer_of(kind: ConstraintKind) -> Callable[..., Struct]:
    """The answer to a question for those of one kind of one table."""

    @answers(METHODS[kind].get_method, of="request")
    def answer(self: ConstraintCalls, request: Struct) -> Struct:
        structs = self.structs(request.catName, request.db_name, request.tbl_name)
        return _response(kind, structs[kind])

    return answer


def _made(kind: ConstraintKind) -> Callable[..., None]:
    """Those of one kind are added, of one table at a time."""

    @answers(METHODS[kind].add_method, of="req")
    def answer(self: ConstraintCalls, request: Struct) -> None:
        self.add(kind, request)

    return answer


def _response(kind: ConstraintKind, structs: list[Struct]) -> Struct:
    described = METHODS[kind]
    answer: Struct = getattr(hive, described.get_response)(**{described.field: structs})
    return answer


class ConstraintCalls(Calls[ConstraintStore]):
    """Keys promise nothing that anybody enforces."""

    primary_keys = _answer_of(ConstraintKind.PRIMARY_KEY)
    unique_constraints = _answer_of(ConstraintKind.UNIQUE)
    not_null = _answer_of(ConstraintKind.NOT_NULL)
    default = _answer_of(ConstraintKind.DEFAULT)
    check = _answer_of(ConstraintKind.CHECK)

    add_primary_key = _made(ConstraintKind.PRIMARY_KEY)
    add_foreign_key = _made(ConstraintKind.FOREIGN_KEY)
    add_unique_constraint = _made(ConstraintKind.UNIQUE)
    add_not_null_constraint = _made(ConstraintKind.NOT_NULL)
    add_default_constraint = _made(ConstraintKind.DEFAULT)
    add_check_constraint = _made(ConstraintKind.CHECK)

    @answers("get_foreign_keys", of="request")
    def foreign_keys(self, request: Struct) -> Struct:
        """Of one table, or those of it that refer to another one."""
        by_kind = self.structs(request.catName, request.foreign_db_name, request.foreign_tbl_name)
        parent = ((request.parent_db_name or "").lower(), (request.parent_tbl_name or "").lower())
        structs = [
            struct
            for struct in by_kind[ConstraintKind.FOREIGN_KEY]
            if parent[0] in ("", struct.pktable_db) and parent[1] in ("", struct.pktable_name)
        ]
        return _response(ConstraintKind.FOREIGN_KEY, structs)

    @answers("get_all_table_constraints", of="request")
    def all_kinds(self, request: Struct) -> Struct:
        by_kind = self.structs(request.catName, request.dbName, request.tblName)
        fields = {METHODS[kind].field: structs for kind, structs in by_kind.items()}
        return hive.AllTableConstraintsResponse(
            allTableConstraints=hive.SQLAllTableConstraints(**fields)
        )

    @answers("drop_constraint", of="req")
    def drop(self, request: Struct) -> None:
        self._store.drop_constraint(
            given_name(request.dbname, "dbname"),
            given_name(request.tablename, "tablename"),
            given_name(request.constraintname, "constraintname"),
            (request.catName or DEFAULT_CATALOG).lower(),
        )

    def add(self, kind: ConstraintKind, request: Struct) -> None:
        """What a request asks to add."""
        field = METHODS[kind].add_field
        structs = given(getattr(request, field), field)
        require_few(field, structs)
        wanted = constraints_from_structs(kind, structs)
        if len(wanted) != 1:
            raise MetaError(f"{field} is of {len(wanted)} tables; send those of one")
        (of_table,) = wanted
        self._store.add_constraints(
            given_name(of_table.database_name, "table_db"),
            given_name(of_table.table_name, "table_name"),
            of_table.constraints,
            of_table.catalog_name,
        )

    def structs(
        self, catalog: str | None, database: str | None, table: str | None
    ) -> dict[ConstraintKind, list[Struct]]:
        """All of one table, by kind."""
        key = (
            given_name(database, "db_name"),
            given_name(table, "tbl_name"),
            (catalog or DEFAULT_CATALOG).lower(),
        )
        by_kind: dict[ConstraintKind, list[Struct]] = {kind: [] for kind in ConstraintKind}
        for constraint in self._store.get_constraints(*key):
            by_kind[constraint.kind].append(constraint_to_struct(constraint, *key))
        return by_kind
