"""FUNCS and FUNC_RU: permanent functions of databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from hms_bridge.backend.batches import batches, insert_rows
from hms_bridge.backend.columns import Columns, member, name_or_none, text
from hms_bridge.backend.schema.catalog_tables import DBS
from hms_bridge.backend.schema.function_tables import FUNC_RU, FUNCS
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog.patterns import matches
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.function import Function, Resource, ResourceType

FUNCTION_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MFunction"
_CHANGEABLE = Columns(
    Function,
    name="FUNC_NAME",
    class_name=text("CLASS_NAME"),
    type="FUNC_TYPE",
    owner_name="OWNER_NAME",
    owner_type=name_or_none("OWNER_TYPE", PrincipalType),
)
_RESOURCE = Columns(Resource, type=member("RESOURCE_TYPE", ResourceType), uri=text("RESOURCE_URI"))


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredFunction:
    """A function and its key."""

    id: int
    function: Function


def find_functions(
    connection: Connection, catalog: str, database: str | None = None, pattern: str | None = None
) -> tuple[StoredFunction, ...]:
    """Of a catalog, or of one database; sorted by database and name."""
    where: list[ColumnElement[bool]] = [DBS.c.CTLG_NAME == catalog]
    if database is not None:
        where.append(DBS.c.NAME == database)
    if pattern is not None:
        where.append(matches(FUNCS.c.FUNC_NAME, pattern))
    return _load(connection, where)


def find_function(
    connection: Connection, catalog: str, database: str, name: str
) -> StoredFunction | None:
    """One; None if it is not there."""
    where = [DBS.c.CTLG_NAME == catalog, DBS.c.NAME == database, FUNCS.c.FUNC_NAME == name]
    functions = _load(connection, where)
    return functions[0] if functions else None


def insert_function(connection: Connection, database_id: int, function: Function) -> None:
    """A new one; the caller has seen that its name is free."""
    key = next_sequence_values(connection, FUNCTION_SEQUENCE, 1)
    values = _CHANGEABLE.values(function) | {"CREATE_TIME": function.create_time}
    connection.execute(insert(FUNCS).values(FUNC_ID=key, DB_ID=database_id, **values))
    _insert_resources(connection, key, function.resources)


def update_function(
    connection: Connection, stored: StoredFunction, database_id: int, function: Function
) -> None:
    """Replace one, and its name and database too; it keeps the time when it was made."""
    here = FUNCS.c.FUNC_ID == stored.id
    connection.execute(
        update(FUNCS).where(here).values(DB_ID=database_id, **_CHANGEABLE.values(function))
    )
    connection.execute(delete(FUNC_RU).where(FUNC_RU.c.FUNC_ID == stored.id))
    _insert_resources(connection, stored.id, function.resources)


def delete_functions(connection: Connection, stored: Sequence[StoredFunction]) -> None:
    """With the rows of their resources, in as many statements as parameters need."""
    for piece in batches([function.id for function in stored]):
        connection.execute(delete(FUNC_RU).where(FUNC_RU.c.FUNC_ID.in_(piece)))
        connection.execute(delete(FUNCS).where(FUNCS.c.FUNC_ID.in_(piece)))


def _load(
    connection: Connection, where: Sequence[ColumnElement[bool]]
) -> tuple[StoredFunction, ...]:
    rows = connection.execute(
        select(FUNCS, DBS.c.NAME.label("DATABASE_NAME"), DBS.c.CTLG_NAME)
        .join(DBS, FUNCS.c.DB_ID == DBS.c.DB_ID)
        .where(*where)
        .order_by(DBS.c.NAME, FUNCS.c.FUNC_NAME)
    ).all()
    resources: dict[int, list[Resource]] = {}
    for piece in batches([row.FUNC_ID for row in rows]):
        result = connection.execute(
            select(FUNC_RU).where(FUNC_RU.c.FUNC_ID.in_(piece)).order_by(FUNC_RU.c.INTEGER_IDX)
        )
        for row in result:
            resources.setdefault(row.FUNC_ID, []).append(_RESOURCE.read(row))
    return tuple(
        StoredFunction(
            id=row.FUNC_ID,
            function=_CHANGEABLE.read(
                row,
                database_name=row.DATABASE_NAME,
                catalog_name=row.CTLG_NAME,
                create_time=row.CREATE_TIME,
                resources=tuple(resources.get(row.FUNC_ID, ())),
            ),
        )
        for row in rows
    )


def _insert_resources(connection: Connection, key: int, resources: Sequence[Resource]) -> None:
    rows = [
        {"FUNC_ID": key, "INTEGER_IDX": place, **_RESOURCE.values(resource)}
        for place, resource in enumerate(resources)
    ]
    insert_rows(connection, FUNC_RU, rows)
