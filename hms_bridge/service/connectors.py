"""Verbs of data connectors (Hive: HMSHandler.create_dataconnector_core and its kin)."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import connectors
from hms_bridge.catalog.limits import check_connector, is_plain
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import AlreadyExistsError, InvalidObjectError, InvalidOperationError
from hms_bridge.hooks import changes
from hms_bridge.model.connector import DataConnector
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads, reads_whole, writes


def _create(unit: UnitOfWork, connector: DataConnector) -> None:
    wanted = replace(connector, name=connector.name.lower(), create_time=unit.now_seconds)
    if not is_plain(wanted.name):
        raise InvalidObjectError(f"{connector.name} is not a valid dataconnector name")
    check_connector(wanted)
    if connectors.find_connector(unit.connection, wanted.name) is not None:
        raise AlreadyExistsError(f"DataConnector {wanted.name} already exists")
    connectors.insert_connector(unit.connection, wanted)
    unit.points.append(changes.connector_changed("create", wanted))


def _alter(unit: UnitOfWork, name: str, connector: DataConnector) -> None:
    """Its kind stays, and what is not given of description and kind of owner."""
    check_connector(connector)
    before = connectors.require_connector(unit.connection, name.lower(), RowLock.EXCLUSIVE)
    after = replace(
        before,
        url=connector.url,
        parameters=connector.parameters,
        owner_name=connector.owner_name,
        owner_type=connector.owner_type or before.owner_type,
        description=connector.description or before.description,
    )
    connectors.update_connector(unit.connection, after)
    unit.points.append(changes.connector_changed("alter", after))


def _drop(unit: UnitOfWork, name: str) -> None:
    lowered = name.lower()
    connector = connectors.require_connector(unit.connection, lowered, RowLock.EXCLUSIVE)
    database = connectors.database_of(unit.connection, lowered)
    if database is not None:
        raise InvalidOperationError(f"dataconnector {lowered} is that of database {database}")
    connectors.delete_connector(unit.connection, lowered)
    unit.points.append(changes.connector_changed("drop", connector))


def _get(connection: Connection, name: str) -> DataConnector:
    return connectors.require_connector(connection, name.lower())


class ConnectorVerbs(VerbFamily):
    """The ServedConnectors."""

    create_connector = writes(_create)
    alter_connector = writes(_alter)
    drop_connector = writes(_drop)
    get_connector = reads_whole(sql(_get))
    get_connector_names = reads(sql(connectors.connector_names))
