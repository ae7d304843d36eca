"""Partitions that clients marked as loaded."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, String

from hms_bridge.backend.schema.metadata import ID, key, table

_NAME = String(128)
_LONG_NAME = String(256)
_PARTITION = String(767)

PARTITION_EVENTS = table(
    "PARTITION_EVENTS",
    key("PART_NAME_ID"),
    Column("CAT_NAME", _LONG_NAME),
    Column("DB_NAME", _NAME),
    Column("EVENT_TIME", ID, nullable=False),
    Column("EVENT_TYPE", Integer, nullable=False),
    Column("PARTITION_NAME", _PARTITION),
    Column("TBL_NAME", _LONG_NAME),
    Index("PARTITIONEVENTINDEX", "PARTITION_NAME"),
)
