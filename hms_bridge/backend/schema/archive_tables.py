"""Tables of our own, beside Hive's: the manifest of archived files, and file work to be done.

Their names begin with HMSB_. Paths can be long, so they are in no key; where one must be found,
the SHA-256 of its text is.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ForeignKey, Index, String, Table, Text
from sqlalchemy.dialects import mysql

from hms_bridge.backend.schema.metadata import ID, LETTER, METADATA, TABLE_OPTIONS

_UTF8 = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}
_PATH = Text().with_variant(mysql.LONGTEXT(**_UTF8), "mysql", "mariadb")
_WORDS = Text().with_variant(mysql.LONGTEXT(**_UTF8), "mysql", "mariadb")
_ARCHIVE_NAME = String(255).with_variant(mysql.VARCHAR(255, **_UTF8), "mysql", "mariadb")
_DIGEST = String(64)
_TOKEN = String(64)


def _context_columns() -> tuple[Column[Any], ...]:
    return (
        Column("CAUSE", String(32), nullable=False),
        Column("TABLE_LOCATION", _PATH),
        Column("DB_NAME", String(128)),
        Column("TBL_NAME", String(256)),
        Column("PART_NAME", String(767)),
        Column("TXN_ID", ID),
        Column("COMPACTION_ID", ID),
    )


HMSB_ARCHIVED_FILE = Table(
    "HMSB_ARCHIVED_FILE",
    METADATA,
    Column("CMROOT_DIGEST", _DIGEST, primary_key=True),
    Column("NAME", _ARCHIVE_NAME, primary_key=True),
    Column("CMROOT", _PATH, nullable=False),
    Column("CHECKSUM", String(128), nullable=False),
    Column("SIZE_BYTES", ID, nullable=False),
    Column("STATE", LETTER, nullable=False),
    Column("ARCHIVED_AT_MS", ID, nullable=False),
    Column("IS_REMAINING_IN_TRASH", ID, nullable=False),
    Index("HMSB_ARCHIVED_FILE_STATE", "CMROOT_DIGEST", "STATE"),
    **TABLE_OPTIONS,
)

HMSB_ARCHIVE_ORIGIN = Table(
    "HMSB_ARCHIVE_ORIGIN",
    METADATA,
    Column("CMROOT_DIGEST", _DIGEST, primary_key=True),
    Column("NAME", _ARCHIVE_NAME, primary_key=True),
    Column("ORIGIN_DIGEST", _DIGEST, primary_key=True),
    Column("URI", _PATH, nullable=False),
    Column("DIRECTORY", _PATH, nullable=False),
    Column("ARCHIVED_AT_MS", ID, nullable=False),
    *_context_columns(),
    **TABLE_OPTIONS,
)

HMSB_ARCHIVE_INTENT = Table(
    "HMSB_ARCHIVE_INTENT",
    METADATA,
    Column("INTENT_ID", _TOKEN, primary_key=True),
    Column("VICTIM_DIGEST", _DIGEST, nullable=False),
    Column("VICTIM", _PATH, nullable=False),
    Column("OPEN_VICTIM_DIGEST", _DIGEST, unique=True),
    Column("CMROOT", _PATH),
    Column("IS_REMAINING_IN_TRASH", ID, nullable=False),
    Column("STATE", LETTER, nullable=False),
    Column("CREATED_AT_MS", ID, nullable=False),
    Column("UPDATED_AT_MS", ID, nullable=False),
    Column("REASON", _WORDS, nullable=False),
    *_context_columns(),
    Index("HMSB_ARCHIVE_INTENT_STATE", "STATE", "CREATED_AT_MS"),
    Index("HMSB_ARCHIVE_INTENT_VICTIM", "VICTIM_DIGEST"),
    Index("HMSB_ARCHIVE_INTENT_COMPACTION", "COMPACTION_ID"),
    **TABLE_OPTIONS,
)
"""OPEN_VICTIM_DIGEST is set while the intent is open, so that a victim has one open intent."""

HMSB_ARCHIVE_INTENT_FILE = Table(
    "HMSB_ARCHIVE_INTENT_FILE",
    METADATA,
    Column("INTENT_ID", _TOKEN, ForeignKey("HMSB_ARCHIVE_INTENT.INTENT_ID"), primary_key=True),
    Column("PLACE", ID, primary_key=True, autoincrement=False),
    Column("PATH", _PATH, nullable=False),
    Column("SIZE_BYTES", ID, nullable=False),
    Column("MTIME_MS", ID),
    Column("CHECKSUM", String(128)),
    Column("ARCHIVE_NAME", _ARCHIVE_NAME, index=True),
    **TABLE_OPTIONS,
)

HMSB_ARCHIVE_PIN = Table(
    "HMSB_ARCHIVE_PIN",
    METADATA,
    Column("HOLDER_DIGEST", _DIGEST, primary_key=True),
    Column("HOLDER", _WORDS, nullable=False),
    Column("KIND", LETTER, nullable=False),
    Column("REASON", _WORDS, nullable=False),
    Column("CREATED_AT_MS", ID, nullable=False),
    Column("EXPIRES_AT_MS", ID),
    Column("DB_NAME", String(128)),
    Column("TBL_NAME", String(256)),
    Column("ARCHIVED_SINCE_MS", ID),
    **TABLE_OPTIONS,
)

HMSB_ARCHIVE_PIN_NAME = Table(
    "HMSB_ARCHIVE_PIN_NAME",
    METADATA,
    Column(
        "HOLDER_DIGEST", _DIGEST, ForeignKey("HMSB_ARCHIVE_PIN.HOLDER_DIGEST"), primary_key=True
    ),
    Column("NAME", _ARCHIVE_NAME, primary_key=True, index=True),
    **TABLE_OPTIONS,
)

HMSB_ARCHIVE_GIVEN_UP = Table(
    "HMSB_ARCHIVE_GIVEN_UP",
    METADATA,
    Column(
        "HOLDER_DIGEST", _DIGEST, ForeignKey("HMSB_ARCHIVE_PIN.HOLDER_DIGEST"), primary_key=True
    ),
    Column("GIVEN_UP_AT_MS", ID, nullable=False),
    Column("REASON", _WORDS, nullable=False),
    **TABLE_OPTIONS,
)
"""Pins that outlived their budget, from before the first file goes that they held."""

HMSB_ARCHIVE_LOCK = Table(
    "HMSB_ARCHIVE_LOCK",
    METADATA,
    Column("LOCK_ID", ID, primary_key=True, autoincrement=False),
    **TABLE_OPTIONS,
)
"""One row, which is only locked: a purge and a claim on the same file exclude each other."""

HMSB_LEASE = Table(
    "HMSB_LEASE",
    METADATA,
    Column("LEASE_DIGEST", _DIGEST, primary_key=True),
    Column("NAME", _PATH, nullable=False),
    Column("OWNER", _TOKEN, nullable=False),
    Column("HELD_AT_MS", ID, nullable=False),
    **TABLE_OPTIONS,
)
"""Who purges a file, drives a removal or cleans a queue entry; the owner is a fencing token."""

HMSB_ARCHIVE_TIME = Table(
    "HMSB_ARCHIVE_TIME",
    METADATA,
    Column("TIME_ID", ID, primary_key=True, autoincrement=False),
    Column("SEEN_AT_MS", ID, nullable=False),
    **TABLE_OPTIONS,
)
"""One row: the last plausible time at which somebody looked after the archive."""

MOVE = "m"
"""KIND of a move in HMSB_FILE_TASK."""

HMSB_FILE_TASK = Table(
    "HMSB_FILE_TASK",
    METADATA,
    Column("TASK_ID", _TOKEN, primary_key=True),
    Column("KIND", LETTER, nullable=False),
    Column("LOCATION", _PATH, nullable=False),
    Column("TARGET", _PATH),
    Column("ROOT", _PATH, nullable=False),
    Column("IS_ARCHIVED", ID, nullable=False),
    Column("IS_PURGE", ID, nullable=False),
    Column("CREATED_AT_MS", ID, nullable=False),
    Column("CLAIMED_AT_MS", ID),
    Column("CLAIMED_BY", _TOKEN),
    Column("ERROR", _WORDS),
    *_context_columns(),
    **TABLE_OPTIONS,
)
"""A directory that a committed verb left to be deleted (``d``), or one that is being moved
(``m``) by a verb that has not committed yet."""

HMSB_FILE_TASK_SEEN = Table(
    "HMSB_FILE_TASK_SEEN",
    METADATA,
    Column("TASK_ID", _TOKEN, primary_key=True),
    Column("PLACE", ID, primary_key=True, autoincrement=False),
    Column("PATH", _PATH, nullable=False),
    Column("KIND", LETTER, nullable=False),
    Column("SIZE_BYTES", ID, nullable=False),
    Column("MTIME_MS", ID),
    **TABLE_OPTIONS,
)
"""What was in the directory when its deletion was decided: nothing else is deleted with it."""

SEEDS: tuple[tuple[Table, dict[str, Any]], ...] = (
    (HMSB_ARCHIVE_LOCK, {"LOCK_ID": 1}),
    (HMSB_ARCHIVE_TIME, {"TIME_ID": 1, "SEEN_AT_MS": 0}),
)
"""(table, row): rows to put in where the table is empty."""
