"""Which fields of tables a client of get_table_objects_by_name_req wants.

Hive: TableFields, ObjectStore.getTableObjectsByName (docs/hive/metastore.md §47).
"""

from __future__ import annotations

from typing import Any

from hms_bridge.errors import InvalidOperationError, MetaError
from hms_bridge.model.catalog import PrincipalType, TableType
from hms_bridge.model.shortened import shortened
from hms_bridge.wire.structs import Struct, hive

_SINGLE = frozenset({
    "id", "tableName", "dbName", "owner", "ownerType", "createTime", "lastAccessTime", "retention",
    "sd.location", "sd.inputFormat", "sd.outputFormat", "sd.compressed", "sd.numBuckets",
    "sd.serdeInfo.name", "sd.serdeInfo.serializationLib", "sd.serdeInfo.description",
    "sd.serdeInfo.serializerClass", "sd.serdeInfo.deserializerClass", "sd.serdeInfo.serdeType",
    "sd.storedAsSubDirectories", "viewOriginalText", "viewExpandedText", "rewriteEnabled",
    "tableType", "writeId",
})  # fmt: skip
_SEVERAL = frozenset({
    "values", "sd.cols.name", "sd.cols.type", "sd.cols.comment", "sd.serdeInfo.parameters",
    "sd.bucketCols", "sd.sortCols.col", "sd.sortCols.order", "sd.parameters",
    "sd.skewedInfo.skewedColNames", "sd.skewedInfo.skewedColValues",
    "sd.skewedInfo.skewedColValueLocationMaps", "partitionKeys.name", "partitionKeys.type",
    "partitionKeys.comment", "parameters",
})  # fmt: skip
"""Whoever asks for one of these gets whole tables."""

_ALWAYS: dict[str, Any] = {
    "createTime": 0, "lastAccessTime": 0, "retention": 0, "rewriteEnabled": False, "writeId": 0,
    "id": 0, "tableType": TableType.MANAGED_TABLE.value, "ownerType": int(PrincipalType.USER),
}  # fmt: skip
"""What Java's structs send of a table though nobody set it."""
_SHOWN_MAX = 500


def table_fields(spec: Struct | None) -> frozenset[str] | None:
    """Those that were asked for; None for whole tables. Raises MetaError for an unknown field,
    InvalidOperationError for patterns of keys alone."""
    if spec is None:
        return None
    patterns = (spec.includeParamKeyPattern, spec.excludeParamKeyPattern)
    if spec.fieldList is None and patterns != (None, None):
        raise InvalidOperationError("Include and Exclude Param key are not supported.")
    wanted = frozenset(spec.fieldList or ())
    unknown = sorted(wanted - _SINGLE - _SEVERAL)
    if unknown:
        shown = shortened(", ".join(unknown), _SHOWN_MAX)
        raise MetaError(f"Invalid table fields in the projection spec[{shown}]")
    return wanted if wanted and wanted <= _SINGLE else None


def only_fields(table: Struct, fields: frozenset[str]) -> Struct:
    """A table with these fields alone."""
    kept = {name: getattr(table, name) for name in fields if "." not in name}
    storage = _storage(table.sd, {name.removeprefix("sd.") for name in fields if "." in name})
    return hive.Table(**{**_ALWAYS, **_sent(kept), **_sent({"sd": storage})})


def _storage(storage: Struct, fields: set[str]) -> Struct | None:
    if not fields:
        return None
    kept = {name: getattr(storage, name) for name in fields if "." not in name}
    of_serde = {name.removeprefix("serdeInfo.") for name in fields if "." in name}
    serde = {name: getattr(storage.serdeInfo, name) for name in of_serde}
    always = {"compressed": False, "numBuckets": 1, "storedAsSubDirectories": False}
    return hive.StorageDescriptor(**{
        **always, **_sent(kept), "skewedInfo": hive.SkewedInfo(),
        **({"serdeInfo": hive.SerDeInfo(**_sent(serde))} if of_serde else {}),
    })  # fmt: skip


def _sent(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
