"""Hive's tables of notification events and of what each transaction wrote; how far our event
hooks have heard."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Index, Integer, String, Table

from hms_bridge.backend.schema.metadata import ID, UTF8_TEXT, key, table, utf8_words

_HOOK_NAME = utf8_words(255)

NOTIFICATION_LOG = table(
    "NOTIFICATION_LOG",
    key("NL_ID"),
    Column("EVENT_ID", ID, nullable=False),
    Column("EVENT_TIME", Integer, nullable=False),
    Column("EVENT_TYPE", String(32), nullable=False),
    Column("CAT_NAME", String(256)),
    Column("DB_NAME", String(128)),
    Column("TBL_NAME", String(256)),
    Column("MESSAGE", UTF8_TEXT),
    Column("MESSAGE_FORMAT", String(16)),
    Index("NOTIFICATION_LOG_EVENT_ID", "EVENT_ID", unique=True),
)

NOTIFICATION_SEQUENCE = table(
    "NOTIFICATION_SEQUENCE",
    key("NNI_ID"),
    Column("NEXT_EVENT_ID", ID, nullable=False),
)

TXN_WRITE_NOTIFICATION_LOG = table(
    "TXN_WRITE_NOTIFICATION_LOG",
    Column("WNL_ID", ID, nullable=False),
    key("WNL_TXNID"),
    Column("WNL_WRITEID", ID, nullable=False),
    Column("WNL_DATABASE", String(128), primary_key=True),
    Column("WNL_TABLE", String(256), primary_key=True),
    Column("WNL_PARTITION", String(767), primary_key=True),
    Column("WNL_TABLE_OBJ", UTF8_TEXT, nullable=False),
    Column("WNL_PARTITION_OBJ", UTF8_TEXT),
    Column("WNL_FILES", UTF8_TEXT),
    Column("WNL_EVENT_TIME", Integer, nullable=False),
)

HMSB_EVENT_HOOK = table(
    "HMSB_EVENT_HOOK",
    Column("NAME", _HOOK_NAME, primary_key=True),
    Column("LAST_EVENT_ID", ID, nullable=False),
    Column("OWNER", String(64)),
    Column("HELD_AT_MS", ID),
)
"""The last event that a hook has heard, and which process tells it; nobody where there is none."""

HMSB_HOOK_POINT = table(
    "HMSB_HOOK_POINT",
    key("POINT_ID"),
    Column("AFTER_EVENT_ID", ID, nullable=False),
    Column("POINT_TIME", Integer, nullable=False),
    Column("POINT_TYPE", String(32), nullable=False),
    Column("DB_NAME", String(128)),
    Column("TBL_NAME", String(256)),
    Column("MESSAGE", UTF8_TEXT, nullable=False),
    Index("HMSB_HOOK_POINT_AFTER", "AFTER_EVENT_ID"),
)
"""What hooks are told of and Hive's log has no event for; ids and times as there."""

HMSB_HOOK_HEARD = table(
    "HMSB_HOOK_HEARD",
    Column("NAME", _HOOK_NAME, primary_key=True),
    Column("LAST_POINT_ID", ID, nullable=False),
)
"""The last point that a hook has heard: beside HMSB_EVENT_HOOK, which is older and stays as it is
in databases in use."""

SEEDS: tuple[tuple[Table, dict[str, Any]], ...] = (
    (NOTIFICATION_SEQUENCE, {"NNI_ID": 1, "NEXT_EVENT_ID": 1}),
)
"""(table, row): rows to put in where the table is empty."""
