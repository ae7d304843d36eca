"""Data connectors: HiveServer2 keeps them here. No database is made over one."""

from __future__ import annotations

from hms_bridge.errors import NoSuchObjectError
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_objects import ServedConnectors
from hms_bridge.wire.convert_connector import connector_from_struct, connector_to_struct
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct


class ConnectorCalls(Calls[ServedConnectors]):
    """Databases of other systems."""

    @answers("create_dataconnector")
    def create(self, args: Struct) -> None:
        self._store.create_connector(connector_from_struct(given(args.connector, "connector")))

    @answers("create_dataconnector_req", of="connectorReq")
    def create_req(self, request: Struct) -> None:
        self.create(request)

    @answers("get_dataconnector_req", of="request")
    def get(self, request: Struct) -> Struct:
        name = given_name(request.connectorName, "connectorName")
        return connector_to_struct(self._store.get_connector(name))

    @answers("get_dataconnectors")
    def names(self, _: Struct) -> list[str]:
        return list(self._store.get_connector_names())

    @answers("alter_dataconnector")
    def alter(self, args: Struct) -> None:
        connector = connector_from_struct(given(args.connector, "connector"))
        self._store.alter_connector(given_name(args.name, "name"), connector)

    @answers("alter_dataconnector_req", of="alterReq")
    def alter_req(self, request: Struct) -> None:
        connector = connector_from_struct(given(request.newConnector, "newConnector"))
        name = given_name(request.connectorName, "connectorName")
        self._store.alter_connector(name, connector)

    @answers("drop_dataconnector_req", of="dropDcReq")
    def drop(self, request: Struct) -> None:
        """An unknown one is an error unless the client does not mind."""
        try:
            self._store.drop_connector(given_name(request.connectorName, "connectorName"))
        except NoSuchObjectError:
            if not request.ifNotExists:
                raise
