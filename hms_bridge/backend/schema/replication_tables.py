"""Tables of our own for policies of replication, and for what each of their cycles did."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, String

from hms_bridge.backend.schema.metadata import ID, UTF8_TEXT, table

_POLICY_NAME = String(128)

HMSB_REPL_POLICY = table(
    "HMSB_REPL_POLICY",
    Column("NAME", _POLICY_NAME, primary_key=True),
    Column("ROOT", UTF8_TEXT, nullable=False),
    Column("SOURCE_URL", UTF8_TEXT),
    Column("SOURCE_DB", String(128), nullable=False),
    Column("SOURCE_SETTINGS", UTF8_TEXT, nullable=False),
    Column("TARGET_URL", UTF8_TEXT),
    Column("TARGET_DB", String(128), nullable=False),
    Column("TARGET_SETTINGS", UTF8_TEXT, nullable=False),
    Column("IS_PAUSED", ID, nullable=False),
    Column("NEXT_CYCLE", ID, nullable=False),
)
"""Settings are JSON objects of texts."""

HMSB_REPL_POLICY_TABLES = table(
    "HMSB_REPL_POLICY_TABLES",
    Column("POLICY_NAME", _POLICY_NAME, ForeignKey("HMSB_REPL_POLICY.NAME"), primary_key=True),
    Column("INCLUDED", UTF8_TEXT),
    Column("EXCLUDED", UTF8_TEXT),
)
"""Patterns of the tables that a policy covers. No row: all tables."""

HMSB_REPL_CYCLE = table(
    "HMSB_REPL_CYCLE",
    Column("POLICY_NAME", _POLICY_NAME, ForeignKey("HMSB_REPL_POLICY.NAME"), primary_key=True),
    Column("CYCLE_NUMBER", ID, primary_key=True),
    Column("STARTED_AT_MS", ID, nullable=False),
    Column("ENDED_AT_MS", ID),
    Column("HOST", String(255), nullable=False),
    Column("OUTCOME", String(16), nullable=False),
    Column("DUMP_KIND", String(16)),
    Column("DUMP_DIRECTORY", UTF8_TEXT),
    Column("UNTIL_EVENT_ID", ID),
    Column("EVENT_COUNT", ID, nullable=False),
    Column("FILE_COUNT", ID, nullable=False),
    Column("BYTE_COUNT", ID, nullable=False),
    Column("ATTEMPT_COUNT", ID, nullable=False),
    Column("MESSAGE", UTF8_TEXT),
)

HMSB_REPL_TOTAL = table(
    "HMSB_REPL_TOTAL",
    Column("POLICY_NAME", _POLICY_NAME, ForeignKey("HMSB_REPL_POLICY.NAME"), primary_key=True),
    Column("OUTCOME", String(16), primary_key=True),
    Column("CYCLE_COUNT", ID, nullable=False),
    Column("EVENT_COUNT", ID, nullable=False),
    Column("BYTE_COUNT", ID, nullable=False),
    Column("LAST_STARTED_AT_MS", ID, nullable=False),
    Column("LAST_ENDED_AT_MS", ID),
)
"""Of all cycles that there ever were, also of those that history has forgotten."""

HMSB_REPL_LOAD_ROOTS = table(
    "HMSB_REPL_LOAD_ROOTS",
    Column("DB_NAME", _POLICY_NAME, primary_key=True),
    Column("ROOTS", UTF8_TEXT, nullable=False),
)
"""Below which places the files of a replica come from: a JSON list of texts. No thrift call reaches
them, as the parameters of a database are reached."""

HMSB_REPL_WATCH = table(
    "HMSB_REPL_WATCH",
    Column("POLICY_NAME", _POLICY_NAME, primary_key=True),
    Column("SINCE_MS", ID, nullable=False),
    Column("LATE_AT_MS", ID),
)
"""From when on a policy's next success is waited for, and when it was found to be late.
Without a key to HMSB_REPL_POLICY: a program that knows nothing of this removes policies, too."""
