"""Databases, tables and partitions: thrift structs to records and back.

Records have lower-case names; what a client sends in another case is lowered here. Structs are
filled as Hive 4 fills them: the fields that Java clients need are always there, also when empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import (
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
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive

_NATIVE_DATABASE = 1
_TRUST = "setStatsStateForCreateTable"


def database_to_struct(database: Database) -> Struct:
    """A Database struct."""
    return hive.Database(
        name=database.name,
        description=database.description,
        locationUri=database.location,
        parameters=dict(database.parameters),
        ownerName=database.owner_name,
        ownerType=None if database.owner_type is None else int(database.owner_type),
        catalogName=database.catalog_name,
        createTime=database.create_time,
        managedLocationUri=database.managed_location,
        type=_NATIVE_DATABASE,
    )


def database_from_struct(struct: Struct) -> Database:
    """A database. Raises InvalidObjectError if it has no name."""
    catalog, name = split_catalog(_required(struct.name, "a database", "name"))
    return Database(
        name=name or "",
        catalog_name=(struct.catalogName or catalog).lower(),
        description=struct.description,
        location=struct.locationUri or None,
        managed_location=struct.managedLocationUri or None,
        parameters=_text_map(struct.parameters),
        owner_name=struct.ownerName,
        owner_type=_principal_type(struct.ownerType),
        create_time=struct.createTime,
    )


def table_to_struct(table: Table) -> Struct:
    """A Table struct."""
    return hive.Table(
        tableName=table.name,
        dbName=table.database_name,
        owner=table.owner,
        createTime=table.create_time,
        lastAccessTime=table.last_access_time,
        retention=table.retention,
        sd=storage_to_struct(table.storage),
        partitionKeys=columns_to_structs(table.partition_columns),
        parameters=dict(table.parameters),
        viewOriginalText=table.view_original_text,
        viewExpandedText=table.view_expanded_text,
        tableType=table.type,
        temporary=table.is_temporary or None,
        rewriteEnabled=table.is_rewrite_enabled,
        catName=table.catalog_name,
        ownerType=int(table.owner_type),
        writeId=table.write_id,
        id=table.id,
        isStatsCompliant=table.is_statistics_compliant,
        creationMetadata=None if table.creation is None else creation_to_struct(table.creation),
    )


def table_from_struct(struct: Struct) -> Table:
    """A table. Raises InvalidObjectError if it has no name or no database."""
    name = _required(given(struct, "tbl").tableName, "a table", "tableName").lower()
    catalog, database = split_catalog(_required(struct.dbName, f"table {name}", "dbName"))
    parameters = _text_map(struct.parameters)
    owner_type = _principal_type(struct.ownerType)
    return Table(
        name=name,
        database_name=database or "",
        catalog_name=(struct.catName or catalog).lower(),
        owner=struct.owner,
        owner_type=PrincipalType.USER if owner_type is None else owner_type,
        create_time=struct.createTime or 0,
        last_access_time=struct.lastAccessTime or 0,
        retention=struct.retention or 0,
        storage=storage_from_struct(struct.sd),
        partition_columns=columns_from_structs(struct.partitionKeys),
        parameters=parameters,
        view_original_text=struct.viewOriginalText,
        view_expanded_text=struct.viewExpandedText,
        type=struct.tableType or _implied_type(struct, parameters).value,
        is_rewrite_enabled=bool(struct.rewriteEnabled),
        is_temporary=bool(struct.temporary),
        write_id=-1 if struct.writeId is None else struct.writeId,
        id=struct.id,
        creation=(
            None
            if struct.creationMetadata is None
            else creation_from_struct(struct.creationMetadata)
        ),
        is_statistics_compliant=struct.isStatsCompliant,
    )


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


def creation_to_struct(creation: CreationMetadata) -> Struct:
    """A CreationMetadata struct."""
    return hive.CreationMetadata(
        catName=creation.catalog_name,
        dbName=creation.database_name,
        tblName=creation.table_name,
        tablesUsed=set(creation.table_names),
        validTxnList=creation.snapshot,
        materializationTime=creation.materialized_ms,
        sourceTables=[
            hive.SourceTable(
                table=table_to_struct(source.table),
                insertedCount=source.inserted,
                updatedCount=source.updated,
                deletedCount=source.deleted,
            )
            for source in creation.sources
        ]
        or None,
    )


def creation_from_struct(struct: Struct) -> CreationMetadata:
    """What a materialized view was made of. Raises InvalidObjectError if it has no name."""
    table = _required(struct.tblName, "creation metadata", "tblName")
    catalog, database = split_catalog(_required(struct.dbName, "creation metadata", "dbName"))
    return CreationMetadata(
        catalog_name=(struct.catName or catalog).lower(),
        database_name=database or "",
        table_name=table.lower(),
        table_names=frozenset(name.lower() for name in struct.tablesUsed or ()),
        snapshot=struct.validTxnList,
        materialized_ms=struct.materializationTime,
        sources=tuple(
            SourceTable(
                table=table_from_struct(one.table),
                inserted=one.insertedCount or 0,
                updated=one.updatedCount or 0,
                deleted=one.deletedCount or 0,
            )
            for one in struct.sourceTables or ()
        ),
    )


def partition_to_struct(partition: Partition) -> Struct:
    """A Partition struct."""
    return hive.Partition(
        values=list(partition.values),
        dbName=partition.database_name,
        tableName=partition.table_name,
        createTime=partition.create_time,
        lastAccessTime=partition.last_access_time,
        sd=storage_to_struct(partition.storage),
        parameters=dict(partition.parameters),
        catName=partition.catalog_name,
        writeId=partition.write_id,
        isStatsCompliant=partition.is_statistics_compliant,
    )


def partition_from_struct(
    struct: Struct,
    database: str | None = None,
    table: str | None = None,
    catalog: str | None = None,
) -> Partition:
    """A partition; the given names stand in for those that the struct leaves out.

    Raises InvalidObjectError if it has no values.
    """
    of_table = f"a partition of {struct.dbName or database}.{struct.tableName or table}"
    values = _required(struct.values, of_table, "values")
    struct_catalog, struct_database = split_catalog(struct.dbName)
    return Partition(
        values=tuple(values),
        database_name=struct_database or database or "",
        table_name=(struct.tableName or table or "").lower(),
        catalog_name=(struct.catName or catalog or struct_catalog).lower(),
        create_time=struct.createTime or 0,
        last_access_time=struct.lastAccessTime or 0,
        storage=storage_from_struct(struct.sd),
        parameters=_text_map(struct.parameters),
        write_id=-1 if struct.writeId is None else struct.writeId,
        is_statistics_compliant=struct.isStatsCompliant,
    )


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


def storage_to_struct(storage: Storage) -> Struct:
    """A StorageDescriptor struct with every field that Java clients read."""
    return hive.StorageDescriptor(
        cols=columns_to_structs(storage.columns),
        location=storage.location,
        inputFormat=storage.input_format,
        outputFormat=storage.output_format,
        compressed=storage.is_compressed,
        numBuckets=storage.bucket_count,
        serdeInfo=serde_to_struct(storage.serde),
        bucketCols=list(storage.bucket_columns),
        sortCols=[hive.Order(col=c.name, order=c.order) for c in storage.sort_columns],
        parameters=dict(storage.parameters),
        skewedInfo=hive.SkewedInfo(
            skewedColNames=list(storage.skew.columns),
            skewedColValues=[list(values) for values in storage.skew.values],
            skewedColValueLocationMaps=dict(storage.skew.locations),
        ),
        storedAsSubDirectories=storage.is_stored_as_subdirectories,
    )


def storage_from_struct(struct: Struct | None) -> Storage:
    """Storage; what is not set is empty."""
    if struct is None:
        return Storage()
    return Storage(
        columns=columns_from_structs(struct.cols),
        location=struct.location or None,
        input_format=struct.inputFormat,
        output_format=struct.outputFormat,
        is_compressed=bool(struct.compressed),
        bucket_count=-1 if struct.numBuckets is None else struct.numBuckets,
        serde=serde_from_struct(struct.serdeInfo),
        bucket_columns=tuple(name.lower() for name in struct.bucketCols or ()),
        sort_columns=tuple(
            SortColumn(
                name=_required(c.col, "a sort column", "col").lower(),
                order=1 if c.order is None else c.order,
            )
            for c in struct.sortCols or ()
        ),
        parameters=_text_map(struct.parameters),
        skew=_skew_from_struct(struct.skewedInfo),
        is_stored_as_subdirectories=bool(struct.storedAsSubDirectories),
    )


def serde_to_struct(serde: SerDe) -> Struct:
    """A SerDeInfo struct."""
    return hive.SerDeInfo(
        name=serde.name,
        serializationLib=serde.library,
        parameters=dict(serde.parameters),
        description=serde.description,
        serializerClass=serde.serializer_class,
        deserializerClass=serde.deserializer_class,
        serdeType=serde.type,
    )


def serde_from_struct(struct: Struct | None) -> SerDe:
    """A SerDe; empty for None."""
    if struct is None:
        return SerDe()
    return SerDe(
        name=struct.name,
        library=struct.serializationLib,
        parameters=_text_map(struct.parameters),
        description=struct.description,
        serializer_class=struct.serializerClass,
        deserializer_class=struct.deserializerClass,
        type=struct.serdeType,
    )


def _skew_from_struct(struct: Struct | None) -> Skew:
    if struct is None:
        return Skew()
    return Skew(
        columns=tuple(struct.skewedColNames or ()),
        values=tuple(tuple(values) for values in struct.skewedColValues or ()),
        locations={tuple(k): v for k, v in (struct.skewedColValueLocationMaps or {}).items()},
    )


def _implied_type(struct: Struct, parameters: Mapping[str, str]) -> TableType:
    if struct.viewOriginalText or struct.viewExpandedText:
        return TableType.VIRTUAL_VIEW
    if parameters.get("EXTERNAL", "").lower() == "true":
        return TableType.EXTERNAL_TABLE
    return TableType.MANAGED_TABLE


def _principal_type(number: int | None) -> PrincipalType | None:
    if number is None:
        return None
    try:
        return PrincipalType(number)
    except ValueError:
        raise InvalidObjectError(
            f"{number} is no type of an owner; send 1 (user), 2 (role) or 3 (group)"
        ) from None


def _text_map(parameters: Mapping[str, str] | None) -> dict[str, str]:
    return dict(parameters) if parameters else {}


def _required(value: Any, what: str, field: str) -> Any:
    if not value:
        raise InvalidObjectError(f"{what} was sent without {field}; set that field")
    return value
