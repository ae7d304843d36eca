"""Data connectors: thrift structs to records and back."""

from __future__ import annotations

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.connector import DataConnector
from hms_bridge.wire.convert_catalog import OWNERS
from hms_bridge.wire.fields import both_ways, filled, member, or_else, texts

connector_to_struct, connector_from_struct = both_ways(
    DataConnector,
    "DataConnector",
    name=filled("name"),
    type=filled("type"),
    url=filled("url"),
    description="description",
    parameters=texts("parameters"),
    owner_name="ownerName",
    owner_type=member("ownerType", {None: None, **OWNERS}, "type of an owner"),
    create_time=or_else("createTime", 0),
    error=InvalidObjectError,
)
