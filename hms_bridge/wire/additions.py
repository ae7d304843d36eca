"""What Hive 4's interface has beyond the published bindings, as data.

The bindings were made from an early 4.0; this adds what 4.0 to 4.2 added since, so that every
struct and method of 4.2.0 is there, field by field. Types are written as in the interface
definition: ``i64``, ``list<string>``, ``map<i64,X>`` or the name of a struct. New enum values need
nothing here: enums travel as numbers, and the records of ``hms_bridge.model`` know all of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, or one argument of a method."""

    id: int
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class MethodAddition:
    """A method; ``throws`` are (field name, exception) pairs with ids from 1."""

    name: str
    returns: str | None
    arguments: tuple[Field, ...] = ()
    throws: tuple[tuple[str, str], ...] = ()


def _fields(first_id: int, /, **types: str) -> tuple[Field, ...]:
    """Fields with ids one after the other, each a name and its type."""
    return tuple(Field(at, name, kind) for at, (name, kind) in enumerate(types.items(), first_id))


_HISTOGRAM = _fields(6, histogram="binary")

FIELDS: dict[str, tuple[Field, ...]] = {
    "AbortTxnRequest": _fields(4, errorCode="i64"),
    "AbortTxnsRequest": _fields(2, errorCode="i64"),
    "AddPartitionsRequest": _fields(
        8,
        skipColumnSchemaForPartition="bool",
        partitionColSchema="list<FieldSchema>",
        environmentContext="EnvironmentContext",
    ),
    "AddPartitionsResult": _fields(3, partitionColSchema="list<FieldSchema>"),
    "AllocateTableWriteIdsRequest": _fields(6, reallocate="bool"),
    "AlterPartitionsRequest": _fields(
        8, skipColumnSchemaForPartition="bool", partitionColSchema="list<FieldSchema>"
    ),
    "AlterTableRequest": _fields(
        10, expectedParameterKey="string", expectedParameterValue="string"
    ),
    "Catalog": _fields(5, parameters="map<string,string>"),
    "CompactionInfoStruct": _fields(
        17, poolname="string", numberOfBuckets="i32", orderByClause="string"
    ),
    "CompactionRequest": _fields(
        9, poolName="string", numberOfBuckets="i32", orderByClause="string"
    ),
    # The early interface had a text in field 11; 4.x has the number of a DatabaseType.
    "CreateDatabaseRequest": (*_fields(11, type="i32"), *_fields(13, remote_dbname="string")),
    "DateColumnStatsData": _HISTOGRAM,
    "DecimalColumnStatsData": _HISTOGRAM,
    "DoubleColumnStatsData": _HISTOGRAM,
    "DropCatalogRequest": _fields(2, ifExists="bool"),
    "DropPartitionsRequest": _fields(10, skipColumnSchemaForPartition="bool"),
    "FindNextCompactRequest": _fields(3, poolName="string"),
    "FireEventRequest": _fields(
        7, tblParams="map<string,string>", batchPartitionValsForRefresh="list<list<string>>"
    ),
    "FireEventRequestData": _fields(3, refreshEvent="bool"),
    "GetPartitionsByNamesRequest": _fields(
        11,
        skipColumnSchemaForPartition="bool",
        includeParamKeyPattern="string",
        excludeParamKeyPattern="string",
    ),
    "GetPartitionsPsWithAuthRequest": _fields(
        10,
        skipColumnSchemaForPartition="bool",
        includeParamKeyPattern="string",
        excludeParamKeyPattern="string",
        partNames="list<string>",
    ),
    "LockRequest": _fields(8, locklessReadsEnabled="bool"),
    "LongColumnStatsData": _HISTOGRAM,
    "NotificationEventRequest": _fields(
        4,
        catName="string",
        dbName="string",
        tableNames="list<string>",
        eventTypeList="list<string>",
    ),
    "NotificationEventsCountRequest": _fields(6, tableNames="list<string>"),
    "PartitionsByExprRequest": _fields(
        10,
        skipColumnSchemaForPartition="bool",
        includeParamKeyPattern="string",
        excludeParamKeyPattern="string",
    ),
    "PartitionsRequest": _fields(
        7,
        skipColumnSchemaForPartition="bool",
        includeParamKeyPattern="string",
        excludeParamKeyPattern="string",
    ),
    "ShowCompactRequest": _fields(
        1,
        id="i64",
        poolName="string",
        dbName="string",
        tbName="string",
        partName="string",
        type="i32",
        state="string",
        limit="i64",
        order="string",
    ),
    "ShowCompactResponseElement": _fields(
        20, poolName="string", nextTxnId="i64", txnId="i64", commitTime="i64", hightestWriteId="i64"
    ),
    "TimestampColumnStatsData": _HISTOGRAM,
    "TableMeta": _fields(6, ownerName="string", ownerType="i32"),
}
"""Fields that 4.x added to structs of the published bindings."""

STRUCTS: dict[str, tuple[Field, ...]] = {
    "AbortCompactionRequest": _fields(
        1, compactionIds="list<i64>", type="string", poolName="string"
    ),
    "AbortCompactionResponseElement": _fields(
        1, compactionId="i64", status="string", message="string"
    ),
    "AbortCompactResponse": _fields(1, abortedcompacts="map<i64,AbortCompactionResponseElement>"),
    "AlterDatabaseRequest": _fields(1, oldDbName="string", newDb="Database"),
    "AlterDataConnectorRequest": _fields(1, connectorName="string", newConnector="DataConnector"),
    "AppendPartitionsRequest": _fields(
        1,
        catalogName="string",
        dbName="string",
        tableName="string",
        name="string",
        partVals="list<string>",
        environmentContext="EnvironmentContext",
    ),
    "DeleteColumnStatisticsRequest": _fields(
        1,
        cat_name="string",
        db_name="string",
        tbl_name="string",
        part_names="list<string>",
        col_names="list<string>",
        engine="string",
        tableLevel="bool",
    ),
    "DropDataConnectorRequest": _fields(
        1, connectorName="string", ifNotExists="bool", checkReferences="bool"
    ),
    "DropPartitionRequest": _fields(
        1,
        catName="string",
        dbName="string",
        tblName="string",
        partName="string",
        partVals="list<string>",
        deleteData="bool",
        environmentContext="EnvironmentContext",
    ),
    "DropTableRequest": _fields(
        1,
        catalogName="string",
        dbName="string",
        tableName="string",
        deleteData="bool",
        envContext="EnvironmentContext",
        dropPartitions="bool",
    ),
    "GetDatabaseObjectsRequest": _fields(1, catalogName="string", pattern="string"),
    "GetDatabaseObjectsResponse": _fields(1, databases="list<Database>"),
    "GetFunctionsRequest": _fields(
        1, dbName="string", catalogName="string", pattern="string", returnNames="bool"
    ),
    "GetFunctionsResponse": _fields(1, function_names="list<string>", functions="list<Function>"),
    "GetPartitionsByFilterRequest": _fields(
        1,
        catName="string",
        dbName="string",
        tblName="string",
        filter="string",
        maxParts="i16",
        skipColumnSchemaForPartition="bool",
        includeParamKeyPattern="string",
        excludeParamKeyPattern="string",
    ),
    "PropertyGetRequest": _fields(
        1,
        nameSpace="string",
        mapPrefix="string",
        mapPredicate="string",
        mapSelection="list<string>",
    ),
    "PropertyGetResponse": _fields(1, properties="map<string,map<string,string>>"),
    "PropertySetRequest": _fields(1, nameSpace="string", propertyMap="map<string,string>"),
    "ReplayedTxnsForPolicyResult": _fields(1, replTxnMapEntry="map<string,string>"),
}
"""Structs that 4.x added."""

EXCEPTIONS = frozenset({"CompactionAbortedException", "NoSuchCompactionException"})
"""Exceptions that 4.x added; like all others they have one field, ``message``."""

_CREATES = (
    ("o1", "AlreadyExistsException"), ("o2", "InvalidObjectException"), ("o3", "MetaException"),
)  # fmt: skip
_CHANGES = (("o1", "MetaException"), ("o2", "NoSuchObjectException"))
_DROPS = (
    ("o1", "NoSuchObjectException"), ("o2", "InvalidOperationException"), ("o3", "MetaException"),
)  # fmt: skip
_ADDS_PARTITION = (
    ("o1", "InvalidObjectException"), ("o2", "AlreadyExistsException"), ("o3", "MetaException"),
)  # fmt: skip
_LISTS = (("o1", "NoSuchObjectException"), ("o2", "MetaException"))

METHODS: tuple[MethodAddition, ...] = (
    MethodAddition("abort_Compactions", "AbortCompactResponse",
                   (Field(1, "rqst", "AbortCompactionRequest"),)),
    MethodAddition("add_write_ids_to_min_history", None,
                   (Field(1, "txnId", "i64"), Field(2, "writeIds", "map<string,i64>")),
                   (("o2", "MetaException"),)),
    MethodAddition("alter_database_req", None,
                   (Field(1, "alterDbReq", "AlterDatabaseRequest"),), _CHANGES),
    MethodAddition("alter_dataconnector_req", None,
                   (Field(1, "alterReq", "AlterDataConnectorRequest"),), _CHANGES),
    MethodAddition("append_partition_req", "Partition",
                   (Field(1, "appendPartitionsReq", "AppendPartitionsRequest"),),
                   _ADDS_PARTITION),
    MethodAddition("create_database_req", None,
                   (Field(1, "createDatabaseRequest", "CreateDatabaseRequest"),), _CREATES),
    MethodAddition("create_dataconnector_req", None,
                   (Field(1, "connectorReq", "CreateDataConnectorRequest"),), _CREATES),
    MethodAddition("delete_column_statistics_req", "bool",
                   (Field(1, "req", "DeleteColumnStatisticsRequest"),),
                   (("o1", "NoSuchObjectException"), ("o2", "MetaException"),
                    ("o3", "InvalidObjectException"), ("o4", "InvalidInputException"))),
    MethodAddition("drop_dataconnector_req", None,
                   (Field(1, "dropDcReq", "DropDataConnectorRequest"),), _DROPS),
    MethodAddition("drop_partition_req", "bool",
                   (Field(1, "dropPartitionReq", "DropPartitionRequest"),), _LISTS),
    MethodAddition("drop_table_req", None,
                   (Field(1, "dropTableReq", "DropTableRequest"),),
                   (("o1", "NoSuchObjectException"), ("o3", "MetaException"))),
    MethodAddition("fetch_partition_names_req", "list<string>",
                   (Field(1, "partitionReq", "PartitionsRequest"),), _LISTS),
    MethodAddition("get_databases_req", "GetDatabaseObjectsResponse",
                   (Field(1, "request", "GetDatabaseObjectsRequest"),),
                   (("o1", "MetaException"),)),
    MethodAddition("get_functions_req", "GetFunctionsResponse",
                   (Field(1, "request", "GetFunctionsRequest"),), (("o1", "MetaException"),)),
    MethodAddition("get_partitions_by_filter_req", "list<Partition>",
                   (Field(1, "req", "GetPartitionsByFilterRequest"),), _CHANGES),
    MethodAddition("get_properties", "PropertyGetResponse",
                   (Field(1, "req", "PropertyGetRequest"),),
                   (("e1", "MetaException"), ("e2", "NoSuchObjectException"))),
    MethodAddition("get_replayed_txns_for_policy", "ReplayedTxnsForPolicyResult",
                   (Field(1, "policyName", "string"),), (("o1", "MetaException"),)),
    MethodAddition("set_properties", "bool",
                   (Field(1, "req", "PropertySetRequest"),),
                   (("e1", "MetaException"), ("e2", "NoSuchObjectException"))),
    MethodAddition("submit_for_cleanup", "bool",
                   (Field(1, "o1", "CompactionRequest"), Field(2, "o2", "i64"),
                    Field(3, "o3", "i64")),
                   (("o1", "MetaException"),)),
)  # fmt: skip
"""Methods that 4.x added."""

_INVALID = (Field(3, "o3", "InvalidObjectException"),)

THROWS: dict[str, tuple[Field, ...]] = {
    "get_partitions_by_names": _INVALID,
    "get_partitions_by_names_req": _INVALID,
}
"""Exceptions that 4.x added to methods of the published bindings."""
