"""What is wrong in a metastore's database: what Hive's ``schematool -validate`` looks at, and what
stops us. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from sqlalchemy import Connection, Dialect, or_, select

from hms_bridge.backend.engine import Database
from hms_bridge.backend.number_columns import wrong_numbers
from hms_bridge.backend.schema import catalog_tables as catalog
from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.counters import late_counters
from hms_bridge.backend.schema.install import schema_info
from hms_bridge.backend.schema.shape import Kind, SchemaShape, read_shape
from hms_bridge.backend.schema.txn_tables import VERSION
from hms_bridge.backend.schema.upgrade_plan import differences
from hms_bridge.backend.schema.versions import (
    OURS,
    TARGETS,
    hive_tables,
    is_newer,
    wanted_shape,
)

_SHOWN_LOCATIONS = 20
_LOOSE_KINDS = (Kind.BOOLEAN, Kind.OTHER)
"""Databases write truth values and rare types in several ways."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and what to do about it."""

    what: str
    remedy: str


def validate(database: Database) -> tuple[Problem, ...]:
    """What is wrong with the schema, by severity: the version, tables, then rows."""
    info = schema_info(database)
    if info.version is None:
        return (Problem("there is no metastore schema", "hms-bridge schema init"),)
    if info.version not in TARGETS:
        return (_unknown(info.version),)
    with database.transaction(write=False) as connection:
        shape = read_shape(connection)
        of_tables = tuple(_of_tables(shape, info.version, connection.dialect))
        ours = tuple(_of_ours(shape, info.loose_columns))
        rows = () if of_tables else tuple(_of_rows(connection, info.version))
    return (*of_tables, *ours, *rows)


def _unknown(version: str) -> Problem:
    remedy = "hms-bridge schema upgrade"
    if is_newer(version):
        remedy = "another release of hms-bridge, which knows it; this one does not work on it"
    return Problem(f"table VERSION: '{version}' is none of {', '.join(TARGETS)}", remedy)


def _of_tables(shape: SchemaShape, version: str, dialect: Dialect) -> Iterator[Problem]:
    """What an upgrade to the version that is claimed would change; columns of other kinds, which
    it would not."""
    remedy = f"hms-bridge schema upgrade --to {version}"
    known = {table.name for table in hive_tables(version, dialect)}
    lower = [name for name in shape if name not in known and name.upper() in known]
    if lower and dialect.name == "postgresql":
        yield Problem(f"tables in lower case: {', '.join(sorted(lower)[:5])}", remedy)
    for step in differences(shape, version, dialect):
        yield Problem(step.what, remedy)
    for name, wanted in wanted_shape(version, dialect).items():
        for column in wanted.columns:
            present = shape[name].column(column.name) if name in shape else None
            if present is None or present.kind is column.kind:
                continue
            if dialect.name == "sqlite" or {present.kind, column.kind} & set(_LOOSE_KINDS):
                continue
            yield Problem(
                f"column {name}.{column.name}: {present.kind.value} instead of {column.kind.value}",
                "somebody has changed it by hand: give it Hive's type again",
            )


def _of_ours(shape: SchemaShape, loose_columns: Sequence[str]) -> Iterator[Problem]:
    """A Hive's database needs none of our tables; once one is there, all must be."""
    present = {name.upper() for name in shape}
    wanted = {name for name in TABLES.tables if name.startswith(OURS)}
    missing = sorted(wanted - present)
    if missing and len(missing) < len(wanted):
        yield Problem(f"tables of ours are missing: {', '.join(missing)}", "hms-bridge schema init")
    if loose_columns and len(missing) < len(wanted):
        columns = ", ".join(loose_columns)
        what = f"names of partitions that differ in case are the same in {columns}"
        yield Problem(what, "hms-bridge schema init")


def _of_rows(connection: Connection, version: str) -> Iterator[Problem]:
    versions = connection.execute(select(VERSION.c.VER_ID)).all()
    if len(versions) != 1:
        yield Problem(
            f"table VERSION has {len(versions)} rows", "remove those that are of another version"
        )
    for late in late_counters(connection, version):
        yield Problem(late.what, late.remedy)
    if connection.dialect.name == "sqlite":
        for wrong in wrong_numbers(connection):
            yield Problem(wrong.what, wrong.remedy)
    yield from _locations(connection)
    yield from _tables_without_storage(connection)


def _locations(connection: Connection) -> Iterator[Problem]:
    """Where a database or a table's data is said to be, and cannot; asked so that the millions
    that look well stay where they are."""
    bad = 0
    for table, key, column in (
        (catalog.DBS, catalog.DBS.c.NAME, catalog.DBS.c.DB_LOCATION_URI),
        (catalog.SDS, catalog.SDS.c.SD_ID, catalog.SDS.c.LOCATION),
    ):
        looks_odd = or_(column.not_like("%:/%"), column.like("/%"))
        present = connection.execute(
            select(key, column).where(column != "", looks_odd).order_by(key)
        )
        for name, location in present:
            why = why_no_location(location)
            if why is None:
                continue
            bad += 1
            if bad <= _SHOWN_LOCATIONS:
                yield Problem(
                    f"{table.name}.{column.name} of {name}: '{location}' {why}",
                    "write where the data is, with its file system, as hdfs://cluster/path",
                )
    if bad > _SHOWN_LOCATIONS:
        yield Problem(f"{bad - _SHOWN_LOCATIONS} more locations are wrong", "as above")


def why_no_location(location: str) -> str | None:
    """What is wrong with a location; None if it has a file system and an absolute path."""
    try:
        parts = urlsplit(location)
    except ValueError as error:
        return f"cannot be read ({error})"
    if not parts.scheme:
        return "names no file system"
    return None if parts.path.startswith("/") or parts.netloc else "has no absolute path"


def _tables_without_storage(connection: Connection) -> Iterator[Problem]:
    tables = catalog.TBLS
    present = connection.execute(
        select(tables.c.TBL_ID, tables.c.TBL_NAME)
        .where(tables.c.SD_ID.is_(None), tables.c.TBL_TYPE.not_like("%VIEW%"))
        .order_by(tables.c.TBL_ID)
        .limit(_SHOWN_LOCATIONS)
    )
    for table_id, name in present:
        yield Problem(
            f"TBLS: table {name} (TBL_ID {table_id}) has no storage (SD_ID)",
            "drop its rows; a metastore cannot read it",
        )
