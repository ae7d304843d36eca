"""Constraints in a dump: messages of their events, and `_constraints/c_<table>`, `f_<table>`.

A bootstrap dump has the messages that would make a table's constraints as texts in one JSON object
(docs/hive/replication.md §30). Foreign keys are in a file of their
own, because the key that they refer to must be there first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from hms_bridge.errors import MetastoreError
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.model.target import TableName
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.texts import compact_json
from hms_bridge.repl.format.untrusted import checked_name
from hms_bridge.wire.convert_constraint import (
    METHODS,
    TableConstraints,
    constraints_from_texts,
    constraints_message,
)

OWN_PREFIX = "c_"
FOREIGN_PREFIX = "f_"
"""How the files of a table's own constraints, and of its foreign keys, are called."""

ADDED: Mapping[str, ConstraintKind] = MappingProxyType(
    {
        DumpType.ADD_PRIMARY_KEY.value: ConstraintKind.PRIMARY_KEY,
        DumpType.ADD_FOREIGN_KEY.value: ConstraintKind.FOREIGN_KEY,
        DumpType.ADD_UNIQUE.value: ConstraintKind.UNIQUE,
        DumpType.ADD_NOT_NULL.value: ConstraintKind.NOT_NULL,
        DumpType.ADD_DEFAULT.value: ConstraintKind.DEFAULT,
        DumpType.ADD_CHECK.value: ConstraintKind.CHECK,
    }
)
"""What each dumped kind of event adds."""

_VERSION = "0.2"
_PARTS = {
    "pks": ConstraintKind.PRIMARY_KEY,
    "uks": ConstraintKind.UNIQUE,
    "nns": ConstraintKind.NOT_NULL,
    "fks": ConstraintKind.FOREIGN_KEY,
    "dks": ConstraintKind.DEFAULT,
    "cks": ConstraintKind.CHECK,
}


def added_constraints(payload: Payload, kind: ConstraintKind) -> tuple[TableConstraints, ...]:
    """What a message adds, by table. Raises ReplError if it is damaged."""
    key = METHODS[kind].message_key
    try:
        added = constraints_from_texts(kind, [text for text in payload.texts(key) if text])
    except MetastoreError as error:
        raise payload.wrong(f"{key}: {error}") from error
    for of_table in added:
        checked_name(of_table.database_name, "database")
        checked_name(of_table.table_name, "table")
    return added


def format_constraints(
    table: TableName, constraints: Iterable[ColumnConstraint], now_seconds: int
) -> str:
    """The text of a file with these, of one table; empty for none."""
    by_kind: dict[ConstraintKind, list[ColumnConstraint]] = {}
    for constraint in constraints:
        by_kind.setdefault(constraint.kind, []).append(constraint)
    if not by_kind:
        return ""
    fields = {"version": _VERSION}
    for part, kind in _PARTS.items():
        of_kind = TableConstraints(
            kind=kind,
            database_name=table.database,
            table_name=table.table,
            constraints=tuple(by_kind.get(kind, ())),
        )
        message = compact_json(constraints_message(of_kind, now_seconds))
        fields[part] = message if of_kind.constraints else ""
    return compact_json(fields)


def parse_constraints(text: str, path: str, table: TableName) -> tuple[TableConstraints, ...]:
    """Read a file's text. Raises ReplError, naming ``path``, if it is damaged, or of another table
    than ``table``."""
    file = Payload.parse(text, path)
    parsed: list[TableConstraints] = []
    for part, kind in _PARTS.items():
        # Hives before 4 have no defaults and checks.
        message = file.fields.get(part) or ""
        if not isinstance(message, str):
            raise file.wrong(f"{part} is no text")
        if message.strip():
            parsed += added_constraints(Payload.parse(message, f"{path}, {part}"), kind)
    for of_table in parsed:
        name = TableName(of_table.database_name, of_table.table_name)
        if name != table:
            raise file.wrong(f"it is of {name}, not of {table}")
    return tuple(parsed)
