"""Tables of Hive's that nothing here reads or writes: resource plans, scheduled queries,
tokens.

They are made so that a Hive metastore, and its schematool, find their whole schema in a database
that we made. One that lacks them works with us all the same.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
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


WM_RESOURCEPLAN = _unused(
    "WM_RESOURCEPLAN",
    key("RP_ID"),
    Column("NAME", _NAME, nullable=False),
    Column("NS", _NAME),
    Column("QUERY_PARALLELISM", Integer),
    Column("STATUS", String(20), nullable=False),
    Column("DEFAULT_POOL_ID", ID),  # of WM_POOL, which refers to this table
    UniqueConstraint("NS", "NAME", name="UNIQUE_WM_RESOURCEPLAN"),
)
WM_POOL = _unused(
    "WM_POOL",
    key("POOL_ID"),
    Column("RP_ID", ID, ForeignKey(WM_RESOURCEPLAN.c.RP_ID), nullable=False),
    Column("PATH", String(1024), nullable=False),
    Column("ALLOC_FRACTION", Double),
    Column("QUERY_PARALLELISM", Integer),
    Column("SCHEDULING_POLICY", String(1024)),
    UniqueConstraint("RP_ID", "PATH", name="UNIQUE_WM_POOL"),
)
WM_TRIGGER = _unused(
    "WM_TRIGGER",
    key("TRIGGER_ID"),
    Column("RP_ID", ID, ForeignKey(WM_RESOURCEPLAN.c.RP_ID), nullable=False),
    Column("NAME", _NAME, nullable=False),
    Column("TRIGGER_EXPRESSION", String(1024)),
    Column("ACTION_EXPRESSION", String(1024)),
    Column("IS_IN_UNMANAGED", SmallInteger, nullable=False, server_default="0"),
    UniqueConstraint("RP_ID", "NAME", name="UNIQUE_WM_TRIGGER"),
)
WM_POOL_TO_TRIGGER = _unused(
    "WM_POOL_TO_TRIGGER",
    Column("POOL_ID", ID, ForeignKey(WM_POOL.c.POOL_ID), primary_key=True),
    Column(
        "TRIGGER_ID", ID, ForeignKey(WM_TRIGGER.c.TRIGGER_ID), primary_key=True),
)  # fmt: skip
WM_MAPPING = _unused(
    "WM_MAPPING",
    key("MAPPING_ID"),
    Column("RP_ID", ID, ForeignKey(WM_RESOURCEPLAN.c.RP_ID), nullable=False),
    Column("ENTITY_TYPE", _NAME, nullable=False),
    Column("ENTITY_NAME", _NAME, nullable=False),
    Column("POOL_ID", ID, ForeignKey(WM_POOL.c.POOL_ID)),
    Column("ORDERING", Integer),
    UniqueConstraint("RP_ID", "ENTITY_TYPE", "ENTITY_NAME", name="UNIQUE_WM_MAPPING"),
)

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
PARTITION_EVENTS = _unused(
    "PARTITION_EVENTS",
    key("PART_NAME_ID"),
    Column("CAT_NAME", _LONG_NAME),
    Column("DB_NAME", _NAME),
    Column("EVENT_TIME", ID, nullable=False),
    Column("EVENT_TYPE", Integer, nullable=False),
    Column("PARTITION_NAME", _TYPE),
    Column("TBL_NAME", _LONG_NAME),
    Index("PARTITIONEVENTINDEX", "PARTITION_NAME"),
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
