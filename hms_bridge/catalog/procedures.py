"""STORED_PROCS and PACKAGES, which are kept alike (Hive:
ObjectStore.createOrUpdateStoredProcedure, addPackage and their kin; docs/hive/metastore.md §38)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Column, ColumnElement, Connection, Table, delete, insert, select, update

from hms_bridge.backend.columns import Columns
from hms_bridge.backend.schema.catalog_tables import DBS
from hms_bridge.backend.schema.dependent_tables import PACKAGES, STORED_PROCS
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.model.procedure import Package, StoredProcedure

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept(Generic[T]):
    """Where the texts of one kind stand."""

    table: Table
    key: Column[Any]
    sequence: str
    columns: Columns[T]


PROCEDURES = Kept(
    table=STORED_PROCS,
    key=STORED_PROCS.c.SP_ID,
    sequence="org.apache.hadoop.hive.metastore.model.MStoredProc",
    columns=Columns(StoredProcedure, name="NAME", owner_name="OWNER_NAME", source="SOURCE"),
)
PACKAGES_KEPT = Kept(
    table=PACKAGES,
    key=PACKAGES.c.PKG_ID,
    sequence="org.apache.hadoop.hive.metastore.model.MPackage",
    columns=Columns(Package, name="NAME", owner_name="OWNER_NAME", header="HEADER", body="BODY"),
)


def names(connection: Connection, kept: Kept[Any], catalog: str, database: str) -> tuple[str, ...]:
    """Of a database, sorted."""
    table = kept.table
    query = select(table.c.NAME).join_from(table, DBS, table.c.DB_ID == DBS.c.DB_ID)
    return tuple(sorted(connection.scalars(query.where(*_in(catalog, database)))))


def find(
    connection: Connection, kept: Kept[T], catalog: str, database: str, name: str
) -> tuple[int, T] | None:
    """One with its key; None if it is not there."""
    table = kept.table
    row = connection.execute(
        select(table)
        .join_from(table, DBS, table.c.DB_ID == DBS.c.DB_ID)
        .where(*_in(catalog, database), table.c.NAME == name)
    ).first()
    if row is None:
        return None
    record = kept.columns.read(row, database_name=database, catalog_name=catalog)
    return getattr(row, kept.key.name), record


def put(
    connection: Connection,
    kept: Kept[T],
    database_id: int,
    key: int | None,
    record: T,
    now_seconds: int,
) -> None:
    """A new one, or another text in place of that with a key."""
    values = kept.columns.values(record)
    if key is not None:
        connection.execute(update(kept.table).where(kept.key == key).values(**values))
        return
    new = next_sequence_values(connection, kept.sequence, 1)
    made = {kept.key.name: new, "DB_ID": database_id, "CREATE_TIME": now_seconds}
    connection.execute(insert(kept.table).values(**made, **values))


def remove(connection: Connection, kept: Kept[Any], key: int) -> None:
    """By its key."""
    connection.execute(delete(kept.table).where(kept.key == key))


def _in(catalog: str, database: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return DBS.c.NAME == database, DBS.c.CTLG_NAME == catalog
