"""Tables of Hive's that nothing here reads or writes: types, properties of a
metastore, DataNucleus's list of its own tables.

They are made so that a Hive metastore, and its schematool, find their whole schema in a database
that we made. One that lacks them works with us all the same.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
)

from hms_bridge.backend.schema.metadata import ID, key, table

_NAME = String(128)
_LONG_NAME = String(256)
_TYPE = String(767)


def _unused(name: str, *parts: Column[Any] | Index | UniqueConstraint) -> Table:
    return table(name, *parts, info={"is_unused": True})


TYPES = _unused(
    "TYPES",
    key("TYPES_ID"),
    Column("TYPE_NAME", _NAME),
    Column("TYPE1", _TYPE),
    Column("TYPE2", _TYPE),
    UniqueConstraint("TYPE_NAME", name="UNIQUE_TYPE"),
)
TYPE_FIELDS = _unused(
    "TYPE_FIELDS",
    Column("TYPE_NAME", ID, ForeignKey(TYPES.c.TYPES_ID), primary_key=True),
    Column("COMMENT", _LONG_NAME),
    Column("FIELD_NAME", _NAME, primary_key=True),
    Column("FIELD_TYPE", _TYPE, nullable=False),
    Column("INTEGER_IDX", ID, nullable=False),
    Index("TYPE_FIELDS_N49", "TYPE_NAME"),
)
METASTORE_DB_PROPERTIES = _unused(
    "METASTORE_DB_PROPERTIES",
    Column("PROPERTY_KEY", String(255), primary_key=True),
    Column("PROPERTY_VALUE", String(1000), nullable=False),
    Column("DESCRIPTION", String(1000)),
    Column("PROPERTYCONTENT", LargeBinary),
)
NUCLEUS_TABLES = _unused(
    "NUCLEUS_TABLES",
    Column("CLASS_NAME", _NAME, primary_key=True),
    Column("TABLE_NAME", _NAME, nullable=False),
    Column("TYPE", String(4), nullable=False),
    Column("OWNER", String(2), nullable=False),
    Column("VERSION", String(20), nullable=False),
    Column("INTERFACE_NAME", String(255)),
)
