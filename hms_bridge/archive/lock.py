"""The lock that makes purges and claims on archived files come one after the other."""

from __future__ import annotations

from sqlalchemy import Connection, select

from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.schema.archive_tables import HMSB_ARCHIVE_LOCK

HOLD_ARCHIVE = FixedSql(select(HMSB_ARCHIVE_LOCK).with_for_update())


def hold_archive(connection: Connection) -> None:
    """Hold it until the transaction ends. On SQLite the write transaction does it already."""
    HOLD_ARCHIVE.later(connection)
