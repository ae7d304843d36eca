"""Functions: thrift structs to records and back."""

from __future__ import annotations

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.function import JAVA, Function, Resource, ResourceType
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.structs import Struct, hive


def function_to_struct(function: Function) -> Struct:
    """A Function struct."""
    return hive.Function(
        functionName=function.name,
        dbName=function.database_name,
        className=function.class_name,
        ownerName=function.owner_name,
        ownerType=None if function.owner_type is None else int(function.owner_type),
        createTime=function.create_time,
        functionType=function.type,
        resourceUris=[
            hive.ResourceUri(resourceType=int(one.type), uri=one.uri) for one in function.resources
        ],
        catName=function.catalog_name,
    )


def function_from_struct(struct: Struct) -> Function:
    """A function; its name keeps its case. Raises InvalidObjectError."""
    name = struct.functionName
    if not name or not struct.className:
        raise InvalidObjectError("a function was sent without its name or its class; set both")
    catalog, database = split_catalog(struct.dbName)
    try:
        return Function(
            name=name,
            database_name=(database or "").lower(),
            class_name=struct.className,
            catalog_name=(struct.catName or catalog).lower(),
            owner_name=struct.ownerName,
            owner_type=None if struct.ownerType is None else PrincipalType(struct.ownerType),
            create_time=struct.createTime or 0,
            type=struct.functionType or JAVA,
            resources=tuple(
                Resource(type=ResourceType(one.resourceType or 0), uri=one.uri or "")
                for one in struct.resourceUris or ()
            ),
        )
    except ValueError as error:
        raise InvalidObjectError(
            f"function {name}: {error}; owners are users (1), roles (2) or groups (3), resources "
            "jars (1), files (2) or archives (3)"
        ) from error
