"""DATACONNECTORS: databases of other systems (Hive: ObjectStore.createDataConnector and its kin;
docs/hive/metastore.md §37)."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from hms_bridge.backend.batches import insert_rows
from hms_bridge.backend.columns import Columns, name_or_none
from hms_bridge.backend.schema.catalog_tables import DBS
from hms_bridge.backend.schema.connector_tables import (
    DATACONNECTOR_PARAMS,
    DATACONNECTORS,
    DC_PRIVS,
)
from hms_bridge.catalog.row_locks import RowLock, select_held
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.connector import DataConnector

_C = DATACONNECTORS.c
_P = DATACONNECTOR_PARAMS.c
_COLUMNS = Columns(
    DataConnector,
    name="NAME",
    type="TYPE",
    url="URL",
    description="COMMENT",
    owner_name="OWNER_NAME",
    owner_type=name_or_none("OWNER_TYPE", PrincipalType),
    create_time="CREATE_TIME",
)


def connector_names(connection: Connection) -> tuple[str, ...]:
    """All, sorted."""
    return tuple(sorted(connection.scalars(select(_C.NAME))))


def find_connector(
    connection: Connection, name: str, lock: RowLock = RowLock.NONE
) -> DataConnector | None:
    """One; None if it is not there."""
    statement = select(DATACONNECTORS).where(_C.NAME == name)
    rows = select_held(connection, statement, _C.NAME, lock)
    if not rows:
        return None
    row = rows[0]
    parameters = connection.execute(select(DATACONNECTOR_PARAMS).where(_P.NAME == name))
    return _COLUMNS.read(row, parameters={p.PARAM_KEY: p.PARAM_VALUE or "" for p in parameters})


def require_connector(
    connection: Connection, name: str, lock: RowLock = RowLock.NONE
) -> DataConnector:
    """One. Raises NoSuchObjectError."""
    connector = find_connector(connection, name, lock)
    if connector is None:
        raise NoSuchObjectError(f"Dataconnector named {name} does not exist")
    return connector


def insert_connector(connection: Connection, connector: DataConnector) -> None:
    """A new one; the caller has seen that its name is free."""
    connection.execute(insert(DATACONNECTORS).values(**_COLUMNS.values(connector)))
    _insert_parameters(connection, connector)


def update_connector(connection: Connection, connector: DataConnector) -> None:
    """Replace what one of that name has."""
    here = _C.NAME == connector.name
    connection.execute(update(DATACONNECTORS).where(here).values(**_COLUMNS.values(connector)))
    connection.execute(delete(DATACONNECTOR_PARAMS).where(_P.NAME == connector.name))
    _insert_parameters(connection, connector)


def delete_connector(connection: Connection, name: str) -> None:
    """With its parameters, and what was granted on it."""
    connection.execute(delete(DATACONNECTOR_PARAMS).where(_P.NAME == name))
    connection.execute(delete(DC_PRIVS).where(DC_PRIVS.c.NAME == name))
    connection.execute(delete(DATACONNECTORS).where(_C.NAME == name))


def database_of(connection: Connection, name: str) -> str | None:
    """A database that another metastore made over a connector; None if there is none."""
    query = select(DBS.c.NAME).where(DBS.c.DATACONNECTOR_NAME == name).order_by(DBS.c.DB_ID)
    database: str | None = connection.scalar(query)
    return database


def _insert_parameters(connection: Connection, connector: DataConnector) -> None:
    rows = [
        {"NAME": connector.name, "PARAM_KEY": key, "PARAM_VALUE": value}
        for key, value in connector.parameters.items()
    ]
    insert_rows(connection, DATACONNECTOR_PARAMS, rows)
