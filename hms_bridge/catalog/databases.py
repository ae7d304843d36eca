"""DBS: databases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from hms_bridge.backend.columns import Columns, name_or_none
from hms_bridge.backend.dialect import or_fault
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.schema.catalog_tables import DATABASE_PARAMS, DBS, SERDES, TBLS
from hms_bridge.backend.schema.dependent_tables import (
    I_SCHEMA,
    PACKAGES,
    SCHEMA_VERSION,
    STORED_PROCS,
)
from hms_bridge.backend.schema.function_tables import FUNCS
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog.dependents import delete_dependents
from hms_bridge.catalog.parameters import insert_parameters
from hms_bridge.catalog.patterns import matches
from hms_bridge.catalog.row_locks import RowLock, read_held
from hms_bridge.catalog.storage import delete_unused_column_lists
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Database, PrincipalType

DATABASE_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MDatabase"

_CHANGEABLE = Columns(
    Database,
    description="DESC",
    location="DB_LOCATION_URI",
    managed_location="DB_MANAGED_LOCATION_URI",
    owner_name="OWNER_NAME",
    owner_type=name_or_none("OWNER_TYPE", PrincipalType),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredDatabase:
    """A database and its key."""

    id: int
    database: Database


def _is(name: str, catalog: str) -> ColumnElement[bool]:
    return and_(DBS.c.NAME == name, DBS.c.CTLG_NAME == catalog)


_SELECT_ONE = (
    select(DBS, DATABASE_PARAMS.c.PARAM_KEY, DATABASE_PARAMS.c.PARAM_VALUE)
    .outerjoin(DATABASE_PARAMS, DATABASE_PARAMS.c.DB_ID == DBS.c.DB_ID)
    .where(DBS.c.NAME == bindparam("name"), DBS.c.CTLG_NAME == bindparam("catalog"))
)


def find_database(
    connection: Connection,
    name: str,
    catalog: str = DEFAULT_CATALOG,
    lock: RowLock = RowLock.NONE,
) -> StoredDatabase | None:
    """One database; None if it is not there."""

    def read() -> Sequence[Row[Any]]:
        return connection.execute(_SELECT_ONE, {"name": name, "catalog": catalog}).all()

    rows = read_held(connection, DBS.c.DB_ID, _is(name, catalog), lock, read)
    if not rows:
        return None
    row = rows[0]
    database = _CHANGEABLE.read(
        row,
        name=row.NAME,
        catalog_name=row.CTLG_NAME,
        parameters={r.PARAM_KEY: r.PARAM_VALUE or "" for r in rows if r.PARAM_KEY is not None},
        create_time=row.CREATE_TIME,
    )
    return StoredDatabase(id=row.DB_ID, database=database)


_PARAMETERS = FixedSql(
    select(DATABASE_PARAMS.c.PARAM_KEY, DATABASE_PARAMS.c.PARAM_VALUE)
    .join(DBS, DATABASE_PARAMS.c.DB_ID == DBS.c.DB_ID)
    .where(DBS.c.NAME == bindparam("name"), DBS.c.CTLG_NAME == bindparam("catalog"))
)


def ask_parameters(
    connection: Connection, name: str, catalog: str = DEFAULT_CATALOG
) -> Callable[[], dict[str, str]]:
    """What gives the parameters of a database, for who asks more before he looks at them; none
    where there is no such database."""
    answer = _PARAMETERS.later(connection, name=name, catalog=catalog)
    return lambda: {key: value or "" for key, value in answer.rows}


@cache
def _none_of(keys: tuple[str, ...]) -> FixedSql:
    here = DATABASE_PARAMS.join(DBS, DATABASE_PARAMS.c.DB_ID == DBS.c.DB_ID)
    is_one = or_(*(DATABASE_PARAMS.c.PARAM_KEY == key for key in keys))
    checked = or_fault(func.count(), func.count() == literal(0, BigInteger), "a database is marked")
    return FixedSql(
        select(checked)
        .select_from(here)
        .where(DBS.c.NAME == bindparam("name"), DBS.c.CTLG_NAME == bindparam("catalog"), is_one)
    )


def expect_no_parameter(
    connection: Connection, name: str, keys: tuple[str, ...], catalog: str = DEFAULT_CATALOG
) -> None:
    """Fails, when it is done, if a database has one of these parameters; on PostgreSQL only."""
    _none_of(keys).later(connection, name=name, catalog=catalog)


def require_database(
    connection: Connection,
    name: str,
    catalog: str = DEFAULT_CATALOG,
    lock: RowLock = RowLock.NONE,
) -> StoredDatabase:
    """One database. Raises NoSuchObjectError."""
    stored = find_database(connection, name, catalog, lock)
    if stored is None:
        raise no_database(name, catalog)
    return stored


def no_database(name: str, catalog: str) -> NoSuchObjectError:
    """For who has looked for one."""
    return NoSuchObjectError(f"database {catalog}.{name}")


def database_names(
    connection: Connection, pattern: str | None = None, catalog: str = DEFAULT_CATALOG
) -> tuple[str, ...]:
    """Names that match, sorted."""
    query = select(DBS.c.NAME).where(DBS.c.CTLG_NAME == catalog.lower())
    if pattern is not None:
        query = query.where(matches(DBS.c.NAME, pattern))
    return tuple(sorted(connection.scalars(query)))


def insert_database(connection: Connection, database: Database) -> int:
    """A new database; its DB_ID."""
    key = next_sequence_values(connection, DATABASE_SEQUENCE, 1)
    connection.execute(
        insert(DBS).values(
            DB_ID=key,
            NAME=database.name,
            CTLG_NAME=database.catalog_name,
            CREATE_TIME=database.create_time,
            TYPE="NATIVE",
            **_CHANGEABLE.values(database),
        )
    )
    insert_parameters(connection, DATABASE_PARAMS, [(key, database.parameters)])
    return key


def update_database(connection: Connection, stored: StoredDatabase, database: Database) -> None:
    """Replace everything but name, catalog and creation time."""
    connection.execute(
        update(DBS).where(DBS.c.DB_ID == stored.id).values(**_CHANGEABLE.values(database))
    )
    if stored.database.parameters != database.parameters:
        connection.execute(delete(DATABASE_PARAMS).where(DATABASE_PARAMS.c.DB_ID == stored.id))
        insert_parameters(connection, DATABASE_PARAMS, [(stored.id, database.parameters)])


def delete_database(connection: Connection, stored: StoredDatabase) -> None:
    """Remove a database and what belongs to it; the caller has removed its tables."""
    schemas = _schema_versions(connection, stored.id)
    delete_dependents(connection, DBS, [stored.id])
    delete_unused_column_lists(connection, {key for key, _ in schemas if key is not None})
    serdes = [key for _, key in schemas if key is not None]
    delete_dependents(connection, SERDES, serdes)
    connection.execute(delete(SERDES).where(SERDES.c.SERDE_ID.in_(serdes)))
    connection.execute(delete(DBS).where(DBS.c.DB_ID == stored.id))


def _schema_versions(
    connection: Connection, database_id: int
) -> Sequence[tuple[int | None, int | None]]:
    """Column lists and SerDes that only the versions of registered schemas use."""
    rows = connection.execute(
        select(SCHEMA_VERSION.c.CD_ID, SCHEMA_VERSION.c.SERDE_ID)
        .join_from(SCHEMA_VERSION, I_SCHEMA, SCHEMA_VERSION.c.SCHEMA_ID == I_SCHEMA.c.SCHEMA_ID)
        .where(I_SCHEMA.c.DB_ID == database_id)
    )
    return [(row.CD_ID, row.SERDE_ID) for row in rows]


_CONTENT: tuple[tuple[str, Column[Any]], ...] = (
    ("tables", TBLS.c.DB_ID),
    ("functions", FUNCS.c.DB_ID),
    ("stored procedures", STORED_PROCS.c.DB_ID),
    ("packages", PACKAGES.c.DB_ID),
    ("schemas", I_SCHEMA.c.DB_ID),
)


def content_of(connection: Connection, stored: StoredDatabase) -> str | None:
    """The first kind of thing that a database has, as Hive names it; None if it is empty."""
    for kind, owner in _CONTENT:
        if connection.scalar(select(exists().where(owner == stored.id))):
            return kind
    return None
