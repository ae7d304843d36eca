"""GLOBAL_PRIVS, DB_PRIVS, TBL_PRIVS and their kin: who may do what with which object.

Each kind of objects has a table of its own; here they are alike (Hive: ObjectStore.grantPrivileges
and its kin; docs/hive/metastore.md §32).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Row, Select, Table, delete, select, update

from hms_bridge.backend.batches import batches, insert_rows
from hms_bridge.backend.columns import Columns, flag, name_or_none
from hms_bridge.backend.schema.catalog_tables import DBS, PARTITIONS, TBLS
from hms_bridge.backend.schema.connector_tables import DC_PRIVS
from hms_bridge.backend.schema.privilege_tables import (
    DB_PRIVS,
    GLOBAL_PRIVS,
    PART_COL_PRIVS,
    PART_PRIVS,
    TBL_COL_PRIVS,
    TBL_PRIVS,
)
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.privilege import Grant, ObjectKind, Principal, Securable

_GRANT = Columns(
    Grant,
    grantor="GRANTOR",
    grantor_type=name_or_none("GRANTOR_TYPE", PrincipalType),
    has_grant_option=flag("GRANT_OPTION"),
    create_time="CREATE_TIME",
    authorizer="AUTHORIZER",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Level:
    """Where the grants of one kind of objects stand. ``names`` selects their rows with the names of
    their objects, which ``object`` reads."""

    table: Table
    key: Column[Any]
    privilege: Column[Any]
    owner: Column[Any] | None
    sequence: str
    names: Select[Any]
    object: Callable[[Row[Any]], Securable]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredGrant:
    """A grant and its key."""

    id: int
    grant: Grant


_DATABASE_NAMES = (DBS.c.NAME.label("DATABASE_NAME"), DBS.c.CTLG_NAME)


def _level(
    table: Table,
    model: str,
    owner: Column[Any] | None,
    names: Select[Any],
    read: Callable[[Row[Any]], Securable],
) -> Level:
    (key,) = table.primary_key.columns
    (privilege,) = (column for column in table.c if column.name.endswith("_PRIV"))
    sequence = f"org.apache.hadoop.hive.metastore.model.{model}"
    return Level(
        table=table, key=key, privilege=privilege, owner=owner, sequence=sequence, names=names,
        object=read,
    )  # fmt: skip


def _of_database(table: Table) -> Select[Any]:
    return select(table, *_DATABASE_NAMES).join_from(table, DBS, table.c.DB_ID == DBS.c.DB_ID)


def _of_table(table: Table) -> Select[Any]:
    return (
        select(table, TBLS.c.TBL_NAME, *_DATABASE_NAMES)
        .join_from(table, TBLS, table.c.TBL_ID == TBLS.c.TBL_ID)
        .join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
    )


def _of_partition(table: Table) -> Select[Any]:
    return (
        select(table, PARTITIONS.c.PART_NAME, TBLS.c.TBL_NAME, *_DATABASE_NAMES)
        .join_from(table, PARTITIONS, table.c.PART_ID == PARTITIONS.c.PART_ID)
        .join(TBLS, PARTITIONS.c.TBL_ID == TBLS.c.TBL_ID)
        .join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
    )


def _reader(kind: ObjectKind) -> Callable[[Row[Any]], Securable]:
    def read(row: Row[Any]) -> Securable:
        have = row._mapping
        part_name = have.get("PART_NAME")
        return Securable(
            kind=kind,
            catalog=row.CTLG_NAME,
            database=row.DATABASE_NAME,
            name=have.get("TBL_NAME"),
            values=tuple(v for _, v in parse_partition_name(part_name)) if part_name else (),
            column=have.get("COLUMN_NAME"),
        )

    return read


GLOBAL = _level(
    GLOBAL_PRIVS, "MGlobalPrivilege", None, select(GLOBAL_PRIVS),
    lambda _: Securable(kind=ObjectKind.GLOBAL),
)  # fmt: skip
DATABASE = _level(
    DB_PRIVS, "MDBPrivilege", DB_PRIVS.c.DB_ID, _of_database(DB_PRIVS), _reader(ObjectKind.DATABASE)
)
CONNECTOR = _level(
    DC_PRIVS, "MDCPrivilege", DC_PRIVS.c.NAME, select(DC_PRIVS),
    lambda row: Securable(kind=ObjectKind.CONNECTOR, name=row.NAME),
)  # fmt: skip
TABLE = _level(
    TBL_PRIVS, "MTablePrivilege", TBL_PRIVS.c.TBL_ID, _of_table(TBL_PRIVS),
    _reader(ObjectKind.TABLE),
)  # fmt: skip
PARTITION = _level(
    PART_PRIVS, "MPartitionPrivilege", PART_PRIVS.c.PART_ID, _of_partition(PART_PRIVS),
    _reader(ObjectKind.PARTITION),
)  # fmt: skip
TABLE_COLUMN = _level(
    TBL_COL_PRIVS, "MTableColumnPrivilege", TBL_COL_PRIVS.c.TBL_ID, _of_table(TBL_COL_PRIVS),
    _reader(ObjectKind.COLUMN),
)  # fmt: skip
PARTITION_COLUMN = _level(
    PART_COL_PRIVS, "MPartitionColumnPrivilege", PART_COL_PRIVS.c.PART_ID,
    _of_partition(PART_COL_PRIVS), _reader(ObjectKind.COLUMN),
)  # fmt: skip
LEVELS = (GLOBAL, DATABASE, CONNECTOR, TABLE, PARTITION, TABLE_COLUMN, PARTITION_COLUMN)
"""In the order in which Hive lists them."""

_BY_KIND = {
    ObjectKind.GLOBAL: GLOBAL,
    ObjectKind.DATABASE: DATABASE,
    ObjectKind.CONNECTOR: CONNECTOR,
    ObjectKind.TABLE: TABLE,
    ObjectKind.PARTITION: PARTITION,
}


def level_of(wanted: Securable) -> Level:
    """Where the grants of an object stand."""
    if wanted.kind is ObjectKind.COLUMN:
        return PARTITION_COLUMN if wanted.values else TABLE_COLUMN
    return _BY_KIND[wanted.kind]


def find_grants(
    connection: Connection, level: Level, where: Sequence[ColumnElement[bool]] = ()
) -> tuple[StoredGrant, ...]:
    """Those that match, the oldest first."""
    rows = connection.execute(level.names.where(*where).order_by(level.key))
    return tuple(
        StoredGrant(
            id=getattr(row, level.key.name),
            grant=_GRANT.read(
                row,
                object=level.object(row),
                principal=Principal(row.PRINCIPAL_NAME, PrincipalType[row.PRINCIPAL_TYPE]),
                privilege=getattr(row, level.privilege.name),
            ),
        )
        for row in rows
    )


def on_object(wanted: Securable, partition: str | None = None) -> list[ColumnElement[bool]]:
    """Of an object by its names; ``partition`` is that of its partition. Without a column: of all
    columns."""
    level = level_of(wanted)
    where: list[ColumnElement[bool]] = []
    if level is CONNECTOR:
        where = [DC_PRIVS.c.NAME == wanted.name]
    elif level is not GLOBAL:
        where = [DBS.c.NAME == wanted.database, DBS.c.CTLG_NAME == wanted.catalog]
        if level is not DATABASE:
            where.append(TBLS.c.TBL_NAME == wanted.name)
    if partition is not None:
        where.append(PARTITIONS.c.PART_NAME == partition)
    if wanted.column is not None:
        where.append(level.table.c.COLUMN_NAME == wanted.column)
    return where


def of_principal(level: Level, principal: Principal) -> list[ColumnElement[bool]]:
    """Given to a principal."""
    c = level.table.c
    return [c.PRINCIPAL_NAME == principal.name, c.PRINCIPAL_TYPE == principal.type.name]


def written_by(level: Level, authorizer: str | None) -> list[ColumnElement[bool]]:
    """By one authorization; None: by any."""
    return [] if authorizer is None else [level.table.c.AUTHORIZER == authorizer]


def insert_grants(
    connection: Connection, level: Level, owner: int | str | None, grants: Sequence[Grant]
) -> None:
    """Of one object, by its key."""
    if not grants:
        return
    first = next_sequence_values(connection, level.sequence, len(grants))
    has_column = "COLUMN_NAME" in level.table.c
    rows = [
        {
            level.key.name: first + place,
            level.privilege.name: grant.privilege,
            "PRINCIPAL_NAME": grant.principal.name,
            "PRINCIPAL_TYPE": grant.principal.type.name,
            **_GRANT.values(grant),
            **({} if level.owner is None else {level.owner.name: owner}),
            **({"COLUMN_NAME": grant.object.column} if has_column else {}),
        }
        for place, grant in enumerate(grants)
    ]
    insert_rows(connection, level.table, rows)


def delete_grants(connection: Connection, level: Level, keys: Sequence[int]) -> None:
    """By their keys."""
    for piece in batches(keys):
        connection.execute(delete(level.table).where(level.key.in_(piece)))


def take_grant_options(connection: Connection, level: Level, keys: Sequence[int]) -> None:
    """Leave the privileges, but let them be granted no longer."""
    for piece in batches(keys):
        connection.execute(update(level.table).where(level.key.in_(piece)).values(GRANT_OPTION=0))


def delete_all_of(connection: Connection, principal: Principal) -> None:
    """Everything that was granted to a principal."""
    for level in LEVELS:
        connection.execute(delete(level.table).where(*of_principal(level, principal)))
