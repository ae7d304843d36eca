"""Tables of our own, beside Hive's: the manifest of archived files, and file work to be done.

Their names begin with HMSB_. Paths can be long, so they are in no key; where one must be found,
the SHA-256 of its text is.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ForeignKey, Index, String, Table

from hms_bridge.backend.schema.metadata import ADDED, ID, LETTER, UTF8_TEXT, key, table, utf8_words

_ARCHIVE_NAME = utf8_words(255)
_DIGEST = String(64)
_TOKEN = String(64)


def _context_columns() -> tuple[Column[Any], ...]:
    return (
        Column("CAUSE", String(32), nullable=False),
        Column("TABLE_LOCATION", UTF8_TEXT),
        Column("DB_NAME", String(128)),
        Column("TBL_NAME", String(256)),
        Column("PART_NAME", String(767)),
        Column("TXN_ID", ID),
        Column("COMPACTION_ID", ID),
    )


HMSB_ARCHIVED_FILE = table(
    "HMSB_ARCHIVED_FILE",
    Column("CMROOT_DIGEST", _DIGEST, primary_key=True),
    Column("NAME", _ARCHIVE_NAME, primary_key=True),
    Column("CMROOT", UTF8_TEXT, nullable=False),
    Column("CHECKSUM", String(128), nullable=False),
    Column("SIZE_BYTES", ID, nullable=False),
    Column("STATE", LETTER, nullable=False),
    Column("ARCHIVED_AT_MS", ID, nullable=False),
    Column("IS_REMAINING_IN_TRASH", ID, nullable=False),
    Index("HMSB_ARCHIVED_FILE_STATE", "CMROOT_DIGEST", "STATE"),
)

HMSB_ARCHIVE_ORIGIN = table(
    "HMSB_ARCHIVE_ORIGIN",
    Column("CMROOT_DIGEST", _DIGEST, primary_key=True),
    Column("NAME", _ARCHIVE_NAME, primary_key=True),
    Column("ORIGIN_DIGEST", _DIGEST, primary_key=True),
    Column("URI", UTF8_TEXT, nullable=False),
    Column("DIRECTORY", UTF8_TEXT, nullable=False),
    Column("ARCHIVED_AT_MS", ID, nullable=False),
    *_context_columns(),
)

HMSB_ARCHIVE_INTENT = table(
    "HMSB_ARCHIVE_INTENT",
    Column("INTENT_ID", _TOKEN, primary_key=True),
    Column("VICTIM_DIGEST", _DIGEST, nullable=False),
    Column("VICTIM", UTF8_TEXT, nullable=False),
    Column("OPEN_VICTIM_DIGEST", _DIGEST, unique=True),
    Column("CMROOT", UTF8_TEXT),
    Column("IS_REMAINING_IN_TRASH", ID, nullable=False),
    Column("STATE", LETTER, nullable=False),
    Column("CREATED_AT_MS", ID, nullable=False),
    Column("UPDATED_AT_MS", ID, nullable=False),
    Column("REASON", UTF8_TEXT, nullable=False),
    *_context_columns(),
    Index("HMSB_ARCHIVE_INTENT_STATE", "STATE", "CREATED_AT_MS"),
    Index("HMSB_ARCHIVE_INTENT_VICTIM", "VICTIM_DIGEST"),
    Index("HMSB_ARCHIVE_INTENT_COMPACTION", "COMPACTION_ID"),
)
"""OPEN_VICTIM_DIGEST is set while the intent is open, so that a victim has one open intent."""

HMSB_ARCHIVE_INTENT_FILE = table(
    "HMSB_ARCHIVE_INTENT_FILE",
    Column("INTENT_ID", _TOKEN, ForeignKey("HMSB_ARCHIVE_INTENT.INTENT_ID"), primary_key=True),
    key("PLACE"),
    Column("PATH", UTF8_TEXT, nullable=False),
    Column("SIZE_BYTES", ID, nullable=False),
    Column("MTIME_MS", ID),
    Column("CHECKSUM", String(128)),
    Column("ARCHIVE_NAME", _ARCHIVE_NAME, index=True),
)

HMSB_ARCHIVE_PIN = table(
    "HMSB_ARCHIVE_PIN",
    Column("HOLDER_DIGEST", _DIGEST, primary_key=True),
    Column("HOLDER", UTF8_TEXT, nullable=False),
    Column("KIND", LETTER, nullable=False),
    Column("REASON", UTF8_TEXT, nullable=False),
    Column("CREATED_AT_MS", ID, nullable=False),
    Column("EXPIRES_AT_MS", ID),
    Column("DB_NAME", String(128)),
    Column("TBL_NAME", String(256)),
    Column("ARCHIVED_SINCE_MS", ID),
)

HMSB_ARCHIVE_PIN_NAME = table(
    "HMSB_ARCHIVE_PIN_NAME",
    Column(
        "HOLDER_DIGEST", _DIGEST, ForeignKey("HMSB_ARCHIVE_PIN.HOLDER_DIGEST"), primary_key=True
    ),
    Column("NAME", _ARCHIVE_NAME, primary_key=True, index=True),
)

HMSB_ARCHIVE_GIVEN_UP = table(
    "HMSB_ARCHIVE_GIVEN_UP",
    Column(
        "HOLDER_DIGEST", _DIGEST, ForeignKey("HMSB_ARCHIVE_PIN.HOLDER_DIGEST"), primary_key=True
    ),
    Column("GIVEN_UP_AT_MS", ID, nullable=False),
    Column("REASON", UTF8_TEXT, nullable=False),
)
"""Pins that outlived their budget, from before the first file goes that they held."""

HMSB_ARCHIVE_ANNOUNCED = table(
    "HMSB_ARCHIVE_ANNOUNCED",
    Column("HOLDER_DIGEST", _DIGEST, primary_key=True),
    Column("HOLDER", UTF8_TEXT, nullable=False),
    Column("FACTS", UTF8_TEXT, nullable=False),
)
"""Dumps that are about to be finished, and hooks have yet to hear of; FACTS is a JSON object."""

HMSB_ARCHIVE_LOCK = table(
    "HMSB_ARCHIVE_LOCK",
    key("LOCK_ID"),
)
"""One row, which is only locked: a purge and a claim on the same file exclude each other."""

HMSB_LEASE = table(
    "HMSB_LEASE",
    Column("LEASE_DIGEST", _DIGEST, primary_key=True),
    Column("NAME", UTF8_TEXT, nullable=False),
    Column("OWNER", _TOKEN, nullable=False),
    Column("HELD_AT_MS", ID, nullable=False),
)
"""Who purges a file, drives a removal or cleans a queue entry; the owner is a fencing token."""

HMSB_ARCHIVE_TIME = table(
    "HMSB_ARCHIVE_TIME",
    key("TIME_ID"),
    Column("SEEN_AT_MS", ID, nullable=False),
)
"""One row: when the clock was judged last, which is the sign of life that later ones go by."""

HMSB_TIME_GAP = table(
    "HMSB_TIME_GAP",
    key("BEFORE_MS"),
    key("AFTER_MS"),
    Column("TRUSTED_AT_MS", ID),
)
"""Times between which nothing is known to have happened: the clock may have jumped. They count for
no age until an administrator confirms them at TRUSTED_AT_MS."""

MOVE = "m"
"""KIND of a move in HMSB_FILE_TASK."""

HMSB_FILE_TASK = table(
    "HMSB_FILE_TASK",
    Column("TASK_ID", _TOKEN, primary_key=True),
    Column("KIND", LETTER, nullable=False),
    Column("LOCATION", UTF8_TEXT, nullable=False),
    Column("TARGET", UTF8_TEXT),
    Column("ROOT", UTF8_TEXT, nullable=False),
    Column("IS_ARCHIVED", ID, nullable=False),
    Column("IS_PURGE", ID, nullable=False),
    Column("CREATED_AT_MS", ID, nullable=False),
    Column("CLAIMED_AT_MS", ID),
    Column("CLAIMED_BY", _TOKEN),
    Column("ERROR", UTF8_TEXT),
    *_context_columns(),
    Index("HMSB_FILE_TASK_OF_TABLE", "DB_NAME", "TBL_NAME", "KIND", info=ADDED),
)
"""A directory that a committed verb left to be deleted (``d``), or one that is being moved
(``m``) by a verb that has not committed yet."""

HMSB_FILE_TASK_SEEN = table(
    "HMSB_FILE_TASK_SEEN",
    Column("TASK_ID", _TOKEN, primary_key=True),
    key("PLACE"),
    Column("PATH", UTF8_TEXT, nullable=False),
    Column("KIND", LETTER, nullable=False),
    Column("SIZE_BYTES", ID, nullable=False),
    Column("MTIME_MS", ID),
)
"""What was in the directory when its deletion was decided: nothing else is deleted with it."""

SEEDS: tuple[tuple[Table, dict[str, Any]], ...] = (
    (HMSB_ARCHIVE_LOCK, {"LOCK_ID": 1}),
    (HMSB_ARCHIVE_TIME, {"TIME_ID": 1, "SEEN_AT_MS": 0}),
)
"""(table, row): rows to put in where the table is empty."""
