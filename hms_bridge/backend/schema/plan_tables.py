"""Workload management: resource plans, their pools, triggers and mappings, for HiveServer2."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Integer, SmallInteger, String, UniqueConstraint

from hms_bridge.backend.schema.metadata import ID, key, table

_NAME = String(128)
_POOL_WORDS = String(1024).with_variant(String(767), "mysql", "mariadb")

WM_RESOURCEPLAN = table(
    "WM_RESOURCEPLAN",
    key("RP_ID"),
    Column("NAME", _NAME, nullable=False),
    Column("NS", _NAME),
    Column("QUERY_PARALLELISM", Integer),
    Column("STATUS", String(20), nullable=False),
    Column("DEFAULT_POOL_ID", ID),  # of WM_POOL, which refers to this table
    UniqueConstraint(
        "NS", "NAME", name="UNIQUE_WM_RESOURCEPLAN", info={"mysql_columns": ("NAME", "NS")}
    ),
)
WM_POOL = table(
    "WM_POOL",
    key("POOL_ID"),
    Column("RP_ID", ID, ForeignKey(WM_RESOURCEPLAN.c.RP_ID), nullable=False),
    Column("PATH", _POOL_WORDS, nullable=False),
    Column("ALLOC_FRACTION", Double),
    Column("QUERY_PARALLELISM", Integer),
    Column("SCHEDULING_POLICY", _POOL_WORDS),
    UniqueConstraint("RP_ID", "PATH", name="UNIQUE_WM_POOL"),
)
WM_TRIGGER = table(
    "WM_TRIGGER",
    key("TRIGGER_ID"),
    Column("RP_ID", ID, ForeignKey(WM_RESOURCEPLAN.c.RP_ID), nullable=False),
    Column("NAME", _NAME, nullable=False),
    Column("TRIGGER_EXPRESSION", String(1024)),
    Column("ACTION_EXPRESSION", String(1024)),
    Column("IS_IN_UNMANAGED", SmallInteger, nullable=False, server_default="0"),
    UniqueConstraint("RP_ID", "NAME", name="UNIQUE_WM_TRIGGER"),
)
WM_POOL_TO_TRIGGER = table(
    "WM_POOL_TO_TRIGGER",
    Column("POOL_ID", ID, ForeignKey(WM_POOL.c.POOL_ID), primary_key=True),
    Column(
        "TRIGGER_ID", ID, ForeignKey(WM_TRIGGER.c.TRIGGER_ID), primary_key=True),
)  # fmt: skip
WM_MAPPING = table(
    "WM_MAPPING",
    key("MAPPING_ID"),
    Column("RP_ID", ID, ForeignKey(WM_RESOURCEPLAN.c.RP_ID), nullable=False),
    Column("ENTITY_TYPE", _NAME, nullable=False),
    Column("ENTITY_NAME", _NAME, nullable=False),
    Column("POOL_ID", ID, ForeignKey(WM_POOL.c.POOL_ID)),
    Column("ORDERING", Integer),
    UniqueConstraint("RP_ID", "ENTITY_TYPE", "ENTITY_NAME", name="UNIQUE_WM_MAPPING"),
)
