"""Constraints on columns as thrift structs."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.wire.structs import Struct, hive


@dataclass(frozen=True, kw_only=True, slots=True)
class ConstraintMethod:
    """How constraints of a kind are asked for, and where their structs have their facts."""

    method: str
    request: str
    response: str
    field: str
    struct: str
    name: str
    expression: str | None = None


METHODS = {
    ConstraintKind.NOT_NULL: ConstraintMethod(
        method="get_not_null_constraints",
        request="NotNullConstraintsRequest",
        response="NotNullConstraintsResponse",
        field="notNullConstraints",
        struct="SQLNotNullConstraint",
        name="nn_name",
    ),
    ConstraintKind.DEFAULT: ConstraintMethod(
        method="get_default_constraints",
        request="DefaultConstraintsRequest",
        response="DefaultConstraintsResponse",
        field="defaultConstraints",
        struct="SQLDefaultConstraint",
        name="dc_name",
        expression="default_value",
    ),
    ConstraintKind.CHECK: ConstraintMethod(
        method="get_check_constraints",
        request="CheckConstraintsRequest",
        response="CheckConstraintsResponse",
        field="checkConstraints",
        struct="SQLCheckConstraint",
        name="dc_name",
        expression="check_expression",
    ),
}


def constraint_from_struct(kind: ConstraintKind, struct: Struct) -> ColumnConstraint:
    """A record of what a metastore told."""
    described = METHODS[kind]
    return ColumnConstraint(
        name=getattr(struct, described.name) or "",
        kind=kind,
        column=struct.column_name,
        expression=getattr(struct, described.expression) if described.expression else None,
        is_enabled=bool(struct.enable_cstr),
        is_validated=bool(struct.validate_cstr),
        is_relied_on=bool(struct.rely_cstr),
    )


def constraint_to_struct(
    constraint: ColumnConstraint, database: str, table: str, catalog: str
) -> Struct:
    """As a metastore tells it."""
    described = METHODS[constraint.kind]
    named = {described.name: constraint.name}
    if described.expression:
        named[described.expression] = constraint.expression or ""
    struct: Struct = getattr(hive, described.struct)(
        catName=catalog,
        table_db=database,
        table_name=table,
        column_name=constraint.column,
        enable_cstr=constraint.is_enabled,
        validate_cstr=constraint.is_validated,
        rely_cstr=constraint.is_relied_on,
        **named,
    )
    return struct
