"""Functions: thrift structs to records and back."""

from __future__ import annotations

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.function import JAVA, Function, Resource, ResourceType
from hms_bridge.wire.convert_catalog import OWNERS, of_catalog
from hms_bridge.wire.fields import both_ways, each, filled, member, or_else

_RESOURCES = both_ways(
    Resource,
    "ResourceUri",
    type=member("resourceType", {int(kind): kind for kind in ResourceType}, "type of a resource"),
    uri=or_else("uri", ""),
    error=InvalidObjectError,
)
# Its name keeps its case.
function_to_struct, function_from_struct = both_ways(
    Function,
    "Function",
    name=filled("functionName"),
    database_name="dbName",
    class_name=filled("className"),
    catalog_name="catName",
    owner_name="ownerName",
    owner_type=member("ownerType", {None: None, **OWNERS}, "type of an owner"),
    create_time=or_else("createTime", 0),
    type=or_else("functionType", JAVA),
    resources=each("resourceUris", _RESOURCES, is_sent_empty=True),
    error=InvalidObjectError,
    finish=of_catalog("database_name"),
)
