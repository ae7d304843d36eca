"""Constraints on columns as thrift structs, and lists of them as messages of events have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind, ReferredColumn
from hms_bridge.model.target import TableName
from hms_bridge.wire.object_json import struct_from_json, struct_to_json
from hms_bridge.wire.structs import Struct, hive


@dataclass(frozen=True, kw_only=True, slots=True)
class ConstraintMethod:
    """How constraints of a kind are asked for and made: thrift's names all follow from one word,
    ``word`` (``UniqueConstraint``), which ``snake`` writes otherwise.

    ``name`` and ``expression`` are fields of the struct; ``is_key``: it has a place in a key.
    """

    word: str
    snake: str
    name: str
    expression: str | None = None
    is_key: bool = False

    @property
    def field(self) -> str:
        """The list in an answer, and in SQLAllTableConstraints."""
        return f"{self._lower}s"

    @property
    def get_method(self) -> str:
        """The call that asks for them."""
        return f"get_{self.snake}s"

    @property
    def get_request(self) -> str:
        """The struct that ``get_method`` takes."""
        return f"{self.word}sRequest"

    @property
    def get_response(self) -> str:
        """The struct that it gives."""
        return f"{self.word}sResponse"

    @property
    def add_method(self) -> str:
        """The call that makes them."""
        return f"add_{self.snake}"

    @property
    def add_request(self) -> str:
        """The struct that ``add_method`` takes."""
        return f"Add{self.word}Request"

    @property
    def add_field(self) -> str:
        """The list in that request."""
        return f"{self._lower}Cols"

    @property
    def message_key(self) -> str:
        """The list in the message of the event."""
        return f"{self._lower}ListJson"

    @property
    def struct(self) -> str:
        """The struct of one column."""
        return f"SQL{self.word}"

    @property
    def _lower(self) -> str:
        return self.word[0].lower() + self.word[1:]


METHODS = {
    ConstraintKind.PRIMARY_KEY: ConstraintMethod(
        word="PrimaryKey", snake="primary_key", name="pk_name", is_key=True
    ),
    ConstraintKind.FOREIGN_KEY: ConstraintMethod(
        word="ForeignKey", snake="foreign_key", name="fk_name", is_key=True
    ),
    ConstraintKind.UNIQUE: ConstraintMethod(
        word="UniqueConstraint", snake="unique_constraint", name="uk_name", is_key=True
    ),
    ConstraintKind.NOT_NULL: ConstraintMethod(
        word="NotNullConstraint", snake="not_null_constraint", name="nn_name"
    ),
    ConstraintKind.DEFAULT: ConstraintMethod(
        word="DefaultConstraint",
        snake="default_constraint",
        name="dc_name",
        expression="default_value",
    ),
    ConstraintKind.CHECK: ConstraintMethod(
        word="CheckConstraint",
        snake="check_constraint",
        name="dc_name",
        expression="check_expression",
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TableConstraints:
    """Constraints of one kind and one table."""

    kind: ConstraintKind
    database_name: str
    table_name: str
    constraints: tuple[ColumnConstraint, ...]
    catalog_name: str = DEFAULT_CATALOG


def constraint_from_struct(kind: ConstraintKind, struct: Struct) -> ColumnConstraint:
    """A record of what a metastore answered, or what it is asked to make."""
    described = METHODS[kind]
    is_foreign = kind is ConstraintKind.FOREIGN_KEY
    return ColumnConstraint(
        name=getattr(struct, described.name) or "",
        kind=kind,
        column=struct.fkcolumn_name if is_foreign else struct.column_name,
        expression=getattr(struct, described.expression) if described.expression else None,
        is_enabled=bool(struct.enable_cstr),
        is_validated=bool(struct.validate_cstr),
        is_relied_on=bool(struct.rely_cstr),
        position=(struct.key_seq or 1) if described.is_key else 1,
        refers_to=_referred(struct) if is_foreign else None,
    )


def _referred(struct: Struct) -> ReferredColumn:
    return ReferredColumn(
        database_name=(struct.pktable_db or "").lower(),
        table_name=(struct.pktable_name or "").lower(),
        column=struct.pkcolumn_name or "",
        key_name=struct.pk_name,
        update_rule=struct.update_rule or 0,
        delete_rule=struct.delete_rule or 0,
    )


def constraint_to_struct(
    constraint: ColumnConstraint, database: str, table: str, catalog: str
) -> Struct:
    """As a metastore answers it."""
    described = METHODS[constraint.kind]
    fields: dict[str, object] = {
        described.name: constraint.name or None,
        "catName": catalog,
        "enable_cstr": constraint.is_enabled,
        "validate_cstr": constraint.is_validated,
        "rely_cstr": constraint.is_relied_on,
    }
    if described.expression:
        fields[described.expression] = constraint.expression or ""
    if described.is_key:
        fields["key_seq"] = constraint.position
    referred = constraint.refers_to
    if referred is None:
        fields |= {"table_db": database, "table_name": table, "column_name": constraint.column}
    else:
        fields |= {
            "pktable_db": referred.database_name,
            "pktable_name": referred.table_name,
            "pkcolumn_name": referred.column,
            "pk_name": referred.key_name,
            "update_rule": referred.update_rule,
            "delete_rule": referred.delete_rule,
            "fktable_db": database,
            "fktable_name": table,
            "fkcolumn_name": constraint.column,
        }
    struct: Struct = getattr(hive, described.struct)(**fields)
    return struct


def constraints_to_structs(of_table: TableConstraints) -> list[Struct]:
    """As a metastore answers them."""
    key = (of_table.database_name, of_table.table_name, of_table.catalog_name)
    return [constraint_to_struct(constraint, *key) for constraint in of_table.constraints]


def constraints_from_structs(
    kind: ConstraintKind, structs: Iterable[Struct]
) -> tuple[TableConstraints, ...]:
    """By the tables that have them, in the order of the structs."""
    by_table: dict[TableName, list[ColumnConstraint]] = {}
    for struct in structs:
        is_foreign = kind is ConstraintKind.FOREIGN_KEY
        database = struct.fktable_db if is_foreign else struct.table_db
        table = struct.fktable_name if is_foreign else struct.table_name
        name = TableName.lower(database or "", table or "", struct.catName or DEFAULT_CATALOG)
        by_table.setdefault(name, []).append(constraint_from_struct(kind, struct))
    return tuple(
        TableConstraints(
            kind=kind,
            database_name=name.database,
            table_name=name.table,
            catalog_name=name.catalog,
            constraints=tuple(constraints),
        )
        for name, constraints in by_table.items()
    )


def constraints_message(added: TableConstraints, timestamp_seconds: int) -> dict[str, Any]:
    """The message of their event, which a dump has too."""
    return {
        "server": "",
        "servicePrincipal": "",
        "timestamp": timestamp_seconds,
        METHODS[added.kind].message_key: [
            struct_to_json(struct) for struct in constraints_to_structs(added)
        ],
    }


def constraints_from_texts(
    kind: ConstraintKind, texts: Sequence[str]
) -> tuple[TableConstraints, ...]:
    """Of a message. Raises InvalidObjectError for a text that is none."""
    name = METHODS[kind].struct
    return constraints_from_structs(kind, [struct_from_json(name, text) for text in texts])
