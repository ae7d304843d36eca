"""Who lies where: asked before a directory is deleted, and when one is moved."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    func,
    literal,
    not_,
    or_,
    select,
    update,
)

from changemanager.location import spellings
from hms_bridge.backend.schema.catalog_tables import DBS, PARTITIONS, SDS, TBLS
from hms_bridge.catalog.patterns import ESCAPE
from hms_bridge.model.catalog import Table


def _at_or_below(column: ColumnElement[str], place: str) -> ColumnElement[bool]:
    return or_(*(_at_or_below_text(column, text) for text in spellings(place)))


def _at_or_below_text(column: ColumnElement[str], place: str) -> ColumnElement[bool]:
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


def strangers_below(
    connection: Connection, place: str, table: Table, *, is_moved_along: bool = False
) -> Sequence[tuple[str, str]]:
    """Names and places of all that lies at a stored table's directory or below it, but for the
    table, and those of its partitions that lie where their names say; with ``is_moved_along`` all
    of them.
    """
    own_place = literal(f"{place.rstrip('/')}/") + PARTITIONS.c.PART_NAME
    is_own = PARTITIONS.c.TBL_ID == table.id
    is_at_home = is_own if is_moved_along else and_(is_own, SDS.c.LOCATION == own_place)
    found = connection.execute(
        select(TBLS.c.TBL_NAME, PARTITIONS.c.PART_NAME, SDS.c.LOCATION)
        .select_from(
            SDS.outerjoin(TBLS, TBLS.c.SD_ID == SDS.c.SD_ID).outerjoin(
                PARTITIONS, PARTITIONS.c.SD_ID == SDS.c.SD_ID
            )
        )
        .where(
            _at_or_below(SDS.c.LOCATION, place),
            or_(
                and_(TBLS.c.TBL_ID.is_not(None), TBLS.c.TBL_ID != table.id),
                and_(PARTITIONS.c.PART_ID.is_not(None), not_(is_at_home)),
            ),
        )
    )
    return [
        (f"table {row[0]}" if row[0] is not None else f"partition {row[1]}", row[2])
        for row in found
    ]


def name_below(strangers: Sequence[tuple[str, str]], place: str) -> str | None:
    """Who of those names and places lies at a place or below it; None if nobody does."""
    return next((name for name, at in strangers if is_below(at, place)), None)


def is_below(inner: str, outer: str) -> bool:
    """Whether a place is another one or below it, however each of them is spelled."""
    return any(
        one.rstrip("/") == other.rstrip("/") or one.startswith(f"{other.rstrip('/')}/")
        for one in spellings(inner)
        for other in spellings(outer)
    )


def move_partitions(connection: Connection, table_id: int, old: str, new: str) -> None:
    """Partitions of a table that lay below its old directory now lie below the new one."""
    keys = select(PARTITIONS.c.SD_ID).where(PARTITIONS.c.TBL_ID == table_id)
    length = len(old.rstrip("/"))
    connection.execute(
        update(SDS)
        .where(SDS.c.SD_ID.in_(keys), _at_or_below_text(SDS.c.LOCATION, old))
        .values(LOCATION=new.rstrip("/") + func.substr(SDS.c.LOCATION, length + 1))
    )
