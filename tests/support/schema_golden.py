"""Schemas that Hive's own scripts made, as :mod:`hms_bridge.backend.schema.shape` tells them."""

from __future__ import annotations

import json

from sqlalchemy import Dialect
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.mysql.mariadb import MariaDBDialect

from hms_bridge.backend.schema.shape import (
    ColumnShape,
    IndexShape,
    Kind,
    SchemaShape,
    TableShape,
)
from tests.support.golden import OWN

DIALECTS: dict[str, Dialect] = {
    "postgresql": postgresql.dialect(),
    "mariadb": MariaDBDialect(),
}


def golden_shape(version: str, database: str) -> SchemaShape:
    """``3.1.0``, ``4.0.0``, ``4.2.0`` or ``3.1.0-to-4.2.0`` on ``postgresql`` or ``mariadb``."""
    text = (OWN / "schema" / f"{version}-{database}.jsonl").read_text()
    tables = [_table(json.loads(line)) for line in text.splitlines()]
    return {table.name: table for table in tables}


def _table(row: dict[str, list[list[str]]]) -> TableShape:
    return TableShape(
        name=str(row["table"]),
        columns=tuple(
            ColumnShape(
                name=name,
                kind=Kind(kind),
                capacity=int(capacity),
                is_nullable=bool(is_nullable),
                has_default=bool(has_default),
            )
            for name, kind, capacity, is_nullable, has_default in row["columns"]
        ),
        key=tuple(str(name) for name in row["key"]),
        key_name=str(row["key_name"]),
        indexes=tuple(
            IndexShape(
                name=name,
                columns=tuple(columns),
                is_unique=bool(is_unique),
                is_constraint=bool(is_constraint),
            )
            for name, columns, is_unique, is_constraint in row["indexes"]
        ),
    )
