"""Tables of our own for policies of replication, and for what each of their cycles did."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, String, Table, Text
from sqlalchemy.dialects import mysql

from hms_bridge.backend.schema.metadata import ID, METADATA, TABLE_OPTIONS

_TEXT = Text().with_variant(
    mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
_POLICY_NAME = String(128)

HMSB_REPL_POLICY = Table(
    "HMSB_REPL_POLICY",
    METADATA,
    Column("NAME", _POLICY_NAME, primary_key=True),
    Column("ROOT", _TEXT, nullable=False),
    Column("SOURCE_URL", _TEXT),
    Column("SOURCE_DB", String(128), nullable=False),
    Column("SOURCE_SETTINGS", _TEXT, nullable=False),
    Column("TARGET_URL", _TEXT),
    Column("TARGET_DB", String(128), nullable=False),
    Column("TARGET_SETTINGS", _TEXT, nullable=False),
    Column("IS_PAUSED", ID, nullable=False),
    Column("NEXT_CYCLE", ID, nullable=False),
    **TABLE_OPTIONS,
)
"""Settings are JSON objects of texts."""

HMSB_REPL_POLICY_TABLES = Table(
    "HMSB_REPL_POLICY_TABLES",
    METADATA,
    Column("POLICY_NAME", _POLICY_NAME, ForeignKey("HMSB_REPL_POLICY.NAME"), primary_key=True),
    Column("INCLUDED", _TEXT),
    Column("EXCLUDED", _TEXT),
    **TABLE_OPTIONS,
)
"""Patterns of the tables that a policy covers. No row: all tables."""

HMSB_REPL_CYCLE = Table(
    "HMSB_REPL_CYCLE",
    METADATA,
    Column("POLICY_NAME", _POLICY_NAME, ForeignKey("HMSB_REPL_POLICY.NAME"), primary_key=True),
    Column("CYCLE_NUMBER", ID, primary_key=True),
    Column("STARTED_AT_MS", ID, nullable=False),
    Column("ENDED_AT_MS", ID),
    Column("HOST", String(255), nullable=False),
    Column("OUTCOME", String(16), nullable=False),
    Column("DUMP_KIND", String(16)),
    Column("DUMP_DIRECTORY", _TEXT),
    Column("UNTIL_EVENT_ID", ID),
    Column("EVENT_COUNT", ID, nullable=False),
    Column("FILE_COUNT", ID, nullable=False),
    Column("BYTE_COUNT", ID, nullable=False),
    Column("ATTEMPT_COUNT", ID, nullable=False),
    Column("MESSAGE", _TEXT),
    **TABLE_OPTIONS,
)

HMSB_REPL_TOTAL = Table(
    "HMSB_REPL_TOTAL",
    METADATA,
    Column("POLICY_NAME", _POLICY_NAME, ForeignKey("HMSB_REPL_POLICY.NAME"), primary_key=True),
    Column("OUTCOME", String(16), primary_key=True),
    Column("CYCLE_COUNT", ID, nullable=False),
    Column("EVENT_COUNT", ID, nullable=False),
    Column("BYTE_COUNT", ID, nullable=False),
    Column("LAST_STARTED_AT_MS", ID, nullable=False),
    Column("LAST_ENDED_AT_MS", ID),
    **TABLE_OPTIONS,
)
"""Of all cycles that there ever were, also of those that history has forgotten."""
