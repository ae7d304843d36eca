"""The folder that relative places in the settings of a metastore are of, kept in its database.

Hive's own table of properties has it; Hive looks for properties by name
(ObjectStore.getMetastoreDbUuid), and passes over others.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from hms_bridge.archive.lock import hold_archive
from hms_bridge.backend.schema.unused_tables import METASTORE_DB_PROPERTIES

_KEY = "hms.bridge.folder"


def noted_folder(connection: Connection) -> str | None:
    """None: nobody has noted one."""
    p = METASTORE_DB_PROPERTIES.c
    noted = connection.scalar(select(p.PROPERTY_VALUE).where(p.PROPERTY_KEY == _KEY))
    return None if noted is None else str(noted)


def note_folder(connection: Connection, folder: str) -> None:
    """Note it, unless one is noted."""
    hold_archive(connection)
    if noted_folder(connection) is None:
        connection.execute(
            insert(METASTORE_DB_PROPERTIES).values(
                PROPERTY_KEY=_KEY,
                PROPERTY_VALUE=folder,
                DESCRIPTION="folder that relative places in the settings are of",
            )
        )
