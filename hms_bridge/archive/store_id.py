"""The id of a metastore's database, where Hive keeps it (ObjectStore.getMetastoreDbUuid)."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from hms_bridge.archive.lock import hold_archive
from hms_bridge.backend.schema.unused_tables import METASTORE_DB_PROPERTIES

_KEY = "guid"


def store_id(connection: Connection, new_id: str) -> str:
    """The id; ``new_id`` becomes it if there is none yet."""
    hold_archive(connection)
    p = METASTORE_DB_PROPERTIES.c
    stored = connection.scalar(select(p.PROPERTY_VALUE).where(p.PROPERTY_KEY == _KEY))
    if stored is None:
        connection.execute(
            insert(METASTORE_DB_PROPERTIES).values(
                PROPERTY_KEY=_KEY, PROPERTY_VALUE=new_id, DESCRIPTION="id of the database"
            )
        )
    return new_id if stored is None else str(stored)
