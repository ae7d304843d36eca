"""Hive's tables of notification events and of what each transaction wrote; how far our event
hooks have heard."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Index, Integer, String, Table, Text
from sqlalchemy.dialects import mysql

from hms_bridge.backend.schema.metadata import ID, METADATA, TABLE_OPTIONS

_UTF8_TEXT = Text().with_variant(
    mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
_HOOK_NAME = String(255).with_variant(
    mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)

NOTIFICATION_LOG = Table(
    "NOTIFICATION_LOG",
    METADATA,
    Column("NL_ID", ID, primary_key=True, autoincrement=False),
    Column("EVENT_ID", ID, nullable=False),
    Column("EVENT_TIME", Integer, nullable=False),
    Column("EVENT_TYPE", String(32), nullable=False),
    Column("CAT_NAME", String(256)),
    Column("DB_NAME", String(128)),
    Column("TBL_NAME", String(256)),
    Column("MESSAGE", _UTF8_TEXT),
    Column("MESSAGE_FORMAT", String(16)),
    Index("NOTIFICATION_LOG_EVENT_ID", "EVENT_ID", unique=True),
    **TABLE_OPTIONS,
)

NOTIFICATION_SEQUENCE = Table(
    "NOTIFICATION_SEQUENCE",
    METADATA,
    Column("NNI_ID", ID, primary_key=True, autoincrement=False),
    Column("NEXT_EVENT_ID", ID, nullable=False),
    **TABLE_OPTIONS,
)

TXN_WRITE_NOTIFICATION_LOG = Table(
    "TXN_WRITE_NOTIFICATION_LOG",
    METADATA,
    Column("WNL_ID", ID, nullable=False),
    Column("WNL_TXNID", ID, primary_key=True, autoincrement=False),
    Column("WNL_WRITEID", ID, nullable=False),
    Column("WNL_DATABASE", String(128), primary_key=True),
    Column("WNL_TABLE", String(256), primary_key=True),
    Column("WNL_PARTITION", String(767), primary_key=True),
    Column("WNL_TABLE_OBJ", _UTF8_TEXT, nullable=False),
    Column("WNL_PARTITION_OBJ", _UTF8_TEXT),
    Column("WNL_FILES", _UTF8_TEXT),
    Column("WNL_EVENT_TIME", Integer, nullable=False),
    **TABLE_OPTIONS,
)

HMSB_EVENT_HOOK = Table(
    "HMSB_EVENT_HOOK",
    METADATA,
    Column("NAME", _HOOK_NAME, primary_key=True),
    Column("LAST_EVENT_ID", ID, nullable=False),
    Column("OWNER", String(64)),
    Column("HELD_AT_MS", ID),
    **TABLE_OPTIONS,
)
"""The last event that a hook has heard, and which process tells it; nobody where there is none."""

SEEDS: tuple[tuple[Table, dict[str, Any]], ...] = (
    (NOTIFICATION_SEQUENCE, {"NNI_ID": 1, "NEXT_EVENT_ID": 1}),
)
"""(table, row): rows to put in where the table is empty."""
