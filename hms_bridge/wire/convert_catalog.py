"""Databases, tables and partitions: thrift structs to records and back.

Records have lower-case names; what a client sends in another case is lowered here. Structs are
filled as Hive 4 fills them: the fields that Java clients need are always there, also when empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import (
    Catalog,
    Column,
    CreationMetadata,
    Database,
    Partition,
    PrincipalType,
    SerDe,
    Skew,
    SortColumn,
    SourceTable,
    Storage,
    Table,
    TableType,
)
from hms_bridge.model.properties import EXTERNAL
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.fields import (
    Entry,
    Layout,
    Values,
    both_ways,
    each,
    filled,
    inner,
    inner_or,
    inner_required,
    items,
    member,
    name,
    or_else,
    or_none,
    texts,
    truth,
    zero,
)
from hms_bridge.wire.structs import Struct, hive

_NATIVE_DATABASE = 1
_TRUST = "setStatsStateForCreateTable"
OWNERS = {int(kind): kind for kind in PrincipalType}


def of_catalog(field: str) -> Callable[[Values], None]:
    """Takes the catalog out of a database's name; it counts where no field says another."""

    def finish(values: Values) -> None:
        catalog, database = split_catalog(values[field])
        values[field] = database or ""
        values["catalog_name"] = (values["catalog_name"] or catalog).lower()

    return finish


def _or_minus_one(attribute: str) -> Entry:
    return Entry(attribute, lambda number: -1 if number is None else number)


def columns_to_structs(columns: Iterable[Column]) -> list[Struct]:
    """FieldSchema structs."""
    make = hive.FieldSchema
    return [make(name=c.name, type=c.type, comment=c.comment) for c in columns]


def columns_from_structs(structs: Iterable[Struct] | None) -> tuple[Column, ...]:
    """Columns. Raises InvalidObjectError if one has no name or no type."""
    columns = []
    for struct in structs or ():
        name, kind = struct.name, struct.type
        if not name or not kind:
            raise InvalidObjectError(f"column {name!r} has type {kind!r}; give both")
        columns.append(Column(name=name.lower(), type=kind, comment=struct.comment))
    return tuple(columns)


_of_database_name = of_catalog("database_name")


def _finish_table(values: Values) -> None:
    _of_database_name(values)
    if not values["type"]:
        values["type"] = _implied_type(values).value


def _implied_type(values: Values) -> TableType:
    if values["view_original_text"] or values["view_expanded_text"]:
        return TableType.VIRTUAL_VIEW
    if values["parameters"].get(EXTERNAL, "").lower() == "true":
        return TableType.EXTERNAL_TABLE
    return TableType.MANAGED_TABLE


def _sources_to_structs(sources: Iterable[SourceTable]) -> list[Struct] | None:
    return [_source_to_struct(source) for source in sources] or None


def _sources_from_structs(structs: Iterable[Struct] | None) -> tuple[SourceTable, ...]:
    return tuple(_source_from_struct(struct) for struct in structs or ())


def _names_from_wire(names: Iterable[str] | None) -> frozenset[str]:
    return frozenset(name.lower() for name in names or ())


database_to_struct, database_from_struct = both_ways(
    Database,
    "Database",
    name=filled("name"),
    catalog_name="catalogName",
    description="description",
    location=or_none("locationUri"),
    managed_location=or_none("managedLocationUri"),
    parameters=texts("parameters"),
    owner_name="ownerName",
    owner_type=member("ownerType", {None: None, **OWNERS}, "type of an owner"),
    create_time="createTime",
    always={"type": _NATIVE_DATABASE},
    error=InvalidObjectError,
    finish=of_catalog("name"),
)
catalog_to_struct, catalog_from_struct = both_ways(
    Catalog,
    "Catalog",
    name=filled("name"),
    description="description",
    location=or_else("locationUri", ""),
    create_time=zero("createTime"),
    error=InvalidObjectError,
)
_SKEW = both_ways(
    Skew,
    "SkewedInfo",
    columns=items("skewedColNames"),
    values=Entry(
        "skewedColValues",
        lambda values: tuple(map(tuple, values or ())),
        lambda values: list(map(list, values)),
    ),
    locations=Entry(
        "skewedColValueLocationMaps",
        lambda places: {tuple(values): place for values, place in (places or {}).items()},
        dict,
    ),
)
_SERDE = both_ways(
    SerDe,
    "SerDeInfo",
    name="name",
    library="serializationLib",
    parameters=texts("parameters"),
    description="description",
    serializer_class="serializerClass",
    deserializer_class="deserializerClass",
    type="serdeType",
)
_SORT_COLUMN = both_ways(
    SortColumn,
    "Order",
    name=name("col"),
    order=Entry("order", lambda order: 1 if order is None else order),
    error=InvalidObjectError,
)
# With every field that Java clients read.
storage_to_struct, storage_from_struct = both_ways(
    Storage,
    "StorageDescriptor",
    columns=Entry("cols", columns_from_structs, columns_to_structs),
    location=or_none("location"),
    input_format="inputFormat",
    output_format="outputFormat",
    is_compressed=truth("compressed"),
    bucket_count=_or_minus_one("numBuckets"),
    serde=inner_or("serdeInfo", _SERDE, SerDe()),
    bucket_columns=Entry(
        "bucketCols", lambda names: tuple(name.lower() for name in names or ()), list
    ),
    sort_columns=each("sortCols", _SORT_COLUMN, is_sent_empty=True),
    parameters=texts("parameters"),
    skew=inner_or("skewedInfo", _SKEW, Skew()),
    is_stored_as_subdirectories=truth("storedAsSubDirectories"),
    error=InvalidObjectError,
)
_STORAGE = inner_or("sd", (storage_to_struct, storage_from_struct), Storage())
creation_to_struct, creation_from_struct = both_ways(
    CreationMetadata,
    "CreationMetadata",
    catalog_name="catName",
    database_name=filled("dbName"),
    table_name=name("tblName"),
    table_names=Entry("tablesUsed", _names_from_wire, set),
    snapshot="validTxnList",
    materialized_ms="materializationTime",
    sources=Entry("sourceTables", _sources_from_structs, _sources_to_structs),
    error=InvalidObjectError,
    finish=of_catalog("database_name"),
)
table_to_struct, table_from_struct = both_ways(
    Table,
    "Table",
    name=name("tableName"),
    database_name=filled("dbName"),
    catalog_name="catName",
    owner="owner",
    owner_type=member("ownerType", {None: PrincipalType.USER, **OWNERS}, "type of an owner"),
    create_time=or_else("createTime", 0),
    last_access_time=or_else("lastAccessTime", 0),
    retention=or_else("retention", 0),
    storage=_STORAGE,
    partition_columns=Entry("partitionKeys", columns_from_structs, columns_to_structs),
    parameters=texts("parameters"),
    view_original_text="viewOriginalText",
    view_expanded_text="viewExpandedText",
    type="tableType",
    is_rewrite_enabled=truth("rewriteEnabled"),
    is_temporary=Entry("temporary", bool, lambda value: value or None),
    write_id=_or_minus_one("writeId"),
    id="id",
    creation=inner("creationMetadata", (creation_to_struct, creation_from_struct)),
    is_statistics_compliant="isStatsCompliant",
    error=InvalidObjectError,
    finish=_finish_table,
)
_source_to_struct, _source_from_struct = both_ways(
    SourceTable,
    "SourceTable",
    table=inner_required("table", (table_to_struct, table_from_struct)),
    inserted=or_else("insertedCount", 0),
    updated=or_else("updatedCount", 0),
    deleted=or_else("deletedCount", 0),
)
_PARTITION = Layout(
    Partition,
    "Partition",
    {
        "values": items("values"),
        "database_name": "dbName",
        "table_name": "tableName",
        "catalog_name": "catName",
        "create_time": or_else("createTime", 0),
        "last_access_time": or_else("lastAccessTime", 0),
        "storage": _STORAGE,
        "parameters": texts("parameters"),
        "write_id": _or_minus_one("writeId"),
        "is_statistics_compliant": "isStatsCompliant",
    },
    error=InvalidObjectError,
)
partition_to_struct = _PARTITION.to_struct


def partition_from_struct(
    struct: Struct,
    database: str | None = None,
    table: str | None = None,
    catalog: str | None = None,
) -> Partition:
    """A partition; the given names stand in for those that the struct leaves out.

    Raises InvalidObjectError if it has no values.
    """
    values = _PARTITION.values_of(struct)
    if not values["values"]:
        of_table = f"{struct.dbName or database}.{struct.tableName or table}"
        raise InvalidObjectError(
            f"a partition of {of_table} was sent without values; set that field"
        )
    in_name, named = split_catalog(struct.dbName)
    values["database_name"] = named or database or ""
    values["table_name"] = (struct.tableName or table or "").lower()
    values["catalog_name"] = (struct.catName or catalog or in_name).lower()
    return Partition(**values)


def trusted_columns_to_struct(columns: Iterable[str]) -> Struct:
    """How Hive 4 says whose statistics are right in a new table: an ObjectDictionary."""
    wish = json.dumps({"enabled": True, "columnNames": list(columns)}, separators=(",", ":"))
    return hive.ObjectDictionary(values={_TRUST: [wish.encode()]})


def take_trusted_columns(struct: Any) -> tuple[str, ...]:
    """Take that wish out of a new table's struct; all columns if it names none. Raises
    InvalidObjectError."""
    values = struct.dictionary.values if struct.dictionary is not None else None
    wishes = values.pop(_TRUST, None) if values else None
    if not wishes:
        return ()
    try:
        wish = json.loads(wishes[0])
        is_enabled, named = bool(wish.get("enabled")), wish.get("columnNames") or ()
    except (ValueError, AttributeError) as error:
        raise InvalidObjectError(f"{_TRUST} is no JSON object: {wishes[0]!r}") from error
    if not is_enabled:
        return ()
    columns = columns_from_structs(None if struct.sd is None else struct.sd.cols)
    return tuple(str(name) for name in named) or tuple(column.name for column in columns)
