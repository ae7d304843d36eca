"""CTLGS: catalogs, which are sets of databases (Hive: ObjectStore.createCatalog and its kin;
docs/hive/metastore.md §33)."""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, insert, select, update

from hms_bridge.backend.columns import Columns
from hms_bridge.backend.schema.catalog_tables import CTLGS
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.catalog.row_locks import RowLock, select_held
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.catalog import Catalog

_CATALOG_SEQUENCE = "org.apache.hadoop.hive.metastore.model.MCatalog"
_COLUMNS = Columns(
    Catalog,
    name="NAME",
    description="DESC",
    location="LOCATION_URI",
    create_time="CREATE_TIME",
)


def catalog_names(connection: Connection) -> tuple[str, ...]:
    """All, sorted."""
    return tuple(sorted(connection.scalars(select(CTLGS.c.NAME))))


def find_catalog(connection: Connection, name: str, lock: RowLock = RowLock.NONE) -> Catalog | None:
    """One; None if it is not there."""
    statement = select(CTLGS).where(CTLGS.c.NAME == name)
    rows = select_held(connection, statement, CTLGS.c.CTLG_ID, lock)
    return _COLUMNS.read(rows[0]) if rows else None


def require_catalog(connection: Connection, name: str, lock: RowLock = RowLock.NONE) -> Catalog:
    """One. Raises NoSuchObjectError."""
    catalog = find_catalog(connection, name, lock)
    if catalog is None:
        raise NoSuchObjectError(f"No catalog {name}")
    return catalog


def insert_catalog(connection: Connection, catalog: Catalog) -> None:
    """A new one; the caller has seen that its name is free. Hive's script makes the first one
    without its sequence."""
    last = connection.scalar(select(func.max(CTLGS.c.CTLG_ID))) or 0
    key = next_sequence_values(connection, _CATALOG_SEQUENCE, 1, after=last)
    connection.execute(insert(CTLGS).values(CTLG_ID=key, **_COLUMNS.values(catalog)))


def update_catalog(connection: Connection, catalog: Catalog) -> None:
    """Replace what one of that name has."""
    values = _COLUMNS.values(catalog)
    connection.execute(update(CTLGS).where(CTLGS.c.NAME == catalog.name).values(**values))


def delete_catalog(connection: Connection, name: str) -> None:
    """Remove one that has no databases any more."""
    connection.execute(delete(CTLGS).where(CTLGS.c.NAME == name))
