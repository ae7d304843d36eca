"""Stored procedures and packages: thrift structs to records and back."""

from __future__ import annotations

from typing import Any

from hms_bridge.model.procedure import Package, StoredProcedure
from hms_bridge.wire.convert_catalog import of_catalog
from hms_bridge.wire.fields import both_ways, filled, or_else

procedure_to_struct, procedure_from_struct = both_ways(
    StoredProcedure,
    "StoredProcedure",
    name=filled("name"),
    database_name=filled("dbName"),
    catalog_name="catName",
    owner_name=or_else("ownerName", ""),
    source=or_else("source", ""),
    finish=of_catalog("database_name"),
)
_PACKAGE: dict[str, Any] = {
    "name": filled("packageName"),
    "database_name": filled("dbName"),
    "catalog_name": "catName",
    "owner_name": or_else("ownerName", ""),
    "header": or_else("header", ""),
    "body": or_else("body", ""),
    "finish": of_catalog("database_name"),
}
package_to_struct = both_ways(Package, "Package", **_PACKAGE)[0]
package_from_struct = both_ways(Package, "AddPackageRequest", **_PACKAGE)[1]
