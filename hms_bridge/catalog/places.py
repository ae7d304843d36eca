"""Who lies where: asked before a directory is deleted, and when one is moved."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, func, or_, select, update

from hms_bridge.backend.schema.catalog_tables import DBS, PARTITIONS, SDS, TBLS
from hms_bridge.catalog.patterns import ESCAPE


def _at_or_below(column: ColumnElement[str], place: str) -> ColumnElement[bool]:
    place = place.rstrip("/")
    escaped = place
    for character in (ESCAPE, "%", "_"):
        escaped = escaped.replace(character, ESCAPE + character)
    return or_(column == place, column.like(f"{escaped}{ESCAPE}{ESCAPE}%", escape=ESCAPE))


def user_of(connection: Connection, place: str) -> str | None:
    """The name of a database, table or partition that lies at a place or below it."""
    database = connection.scalar(
        select(DBS.c.NAME)
        .where(
            or_(
                _at_or_below(DBS.c.DB_LOCATION_URI, place),
                _at_or_below(DBS.c.DB_MANAGED_LOCATION_URI, place),
            )
        )
        .limit(1)
    )
    if database is not None:
        return f"database {database}"
    key = connection.scalar(select(SDS.c.SD_ID).where(_at_or_below(SDS.c.LOCATION, place)).limit(1))
    if key is None:
        return None
    table = connection.scalar(select(TBLS.c.TBL_NAME).where(TBLS.c.SD_ID == key))
    if table is not None:
        return f"table {table}"
    partition = connection.scalar(select(PARTITIONS.c.PART_NAME).where(PARTITIONS.c.SD_ID == key))
    return f"partition {partition}"


def move_partitions(connection: Connection, table_id: int, old: str, new: str) -> None:
    """Partitions of a table that lay below its old directory now lie below the new one."""
    keys = select(PARTITIONS.c.SD_ID).where(PARTITIONS.c.TBL_ID == table_id)
    length = len(old.rstrip("/"))
    connection.execute(
        update(SDS)
        .where(SDS.c.SD_ID.in_(keys), _at_or_below(SDS.c.LOCATION, old))
        .values(LOCATION=new.rstrip("/") + func.substr(SDS.c.LOCATION, length + 1))
    )
