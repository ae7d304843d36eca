"""What rows of our own tables mean, as a number. A release that gives one another meaning raises
:data:`MEANING`, and writes it into the database when it changes rows: programs of earlier releases
then leave it alone, instead of taking for wrong, or for over, what they do not know.

Hive's own table of properties has it; Hive looks for properties by name, and passes over others. A
database without it has the first.
"""

from __future__ import annotations

from sqlalchemy import Connection, select

from hms_bridge.backend.schema.unused_tables import METASTORE_DB_PROPERTIES

MEANING = 1
KEY = "hms.bridge.tables.meaning"


def stated_meaning(connection: Connection) -> str:
    """As it stands there."""
    p = METASTORE_DB_PROPERTIES.c
    return str(connection.scalar(select(p.PROPERTY_VALUE).where(p.PROPERTY_KEY == KEY)) or 1)


def why_unknown(stated: str) -> str | None:
    """Why this program must not touch the rows; None if it may."""
    if stated.isdecimal() and int(stated) <= MEANING:
        return None
    return (
        f"a newer hms-bridge has changed what its tables (HMSB_…) mean there (number {stated}; "
        f"this program knows {MEANING}): take that release or a later one, on every machine"
    )
