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


_SKIP_COLUMNS = "skipColumnSchemaForPartition"
_INCLUDE = "includeParamKeyPattern"
_EXCLUDE = "excludeParamKeyPattern"
_HISTOGRAM = Field(6, "histogram", "binary")

FIELDS: dict[str, tuple[Field, ...]] = {
    "AbortTxnRequest": (Field(4, "errorCode", "i64"),),
    "AbortTxnsRequest": (Field(2, "errorCode", "i64"),),
    "AddPartitionsRequest": (
        Field(8, _SKIP_COLUMNS, "bool"),
        Field(9, "partitionColSchema", "list<FieldSchema>"),
        Field(10, "environmentContext", "EnvironmentContext"),
    ),
    "AddPartitionsResult": (Field(3, "partitionColSchema", "list<FieldSchema>"),),
    "AllocateTableWriteIdsRequest": (Field(6, "reallocate", "bool"),),
    "AlterPartitionsRequest": (
        Field(8, _SKIP_COLUMNS, "bool"),
        Field(9, "partitionColSchema", "list<FieldSchema>"),
    ),
    "AlterTableRequest": (
        Field(10, "expectedParameterKey", "string"),
        Field(11, "expectedParameterValue", "string"),
    ),
    "Catalog": (Field(5, "parameters", "map<string,string>"),),
    "CompactionInfoStruct": (
        Field(17, "poolname", "string"),
        Field(18, "numberOfBuckets", "i32"),
        Field(19, "orderByClause", "string"),
    ),
    "CompactionRequest": (
        Field(9, "poolName", "string"),
        Field(10, "numberOfBuckets", "i32"),
        Field(11, "orderByClause", "string"),
    ),
    # The early interface had a text in field 11; 4.x has the number of a DatabaseType.
    "CreateDatabaseRequest": (Field(11, "type", "i32"), Field(13, "remote_dbname", "string")),
    "DateColumnStatsData": (_HISTOGRAM,),
    "DecimalColumnStatsData": (_HISTOGRAM,),
    "DoubleColumnStatsData": (_HISTOGRAM,),
    "DropCatalogRequest": (Field(2, "ifExists", "bool"),),
    "DropPartitionsRequest": (Field(10, _SKIP_COLUMNS, "bool"),),
    "FindNextCompactRequest": (Field(3, "poolName", "string"),),
    "FireEventRequest": (
        Field(7, "tblParams", "map<string,string>"),
        Field(8, "batchPartitionValsForRefresh", "list<list<string>>"),
    ),
    "FireEventRequestData": (Field(3, "refreshEvent", "bool"),),
    "GetPartitionsByNamesRequest": (
        Field(11, _SKIP_COLUMNS, "bool"),
        Field(12, _INCLUDE, "string"),
        Field(13, _EXCLUDE, "string"),
    ),
    "GetPartitionsPsWithAuthRequest": (
        Field(10, _SKIP_COLUMNS, "bool"),
        Field(11, _INCLUDE, "string"),
        Field(12, _EXCLUDE, "string"),
        Field(13, "partNames", "list<string>"),
    ),
    "LockRequest": (Field(8, "locklessReadsEnabled", "bool"),),
    "LongColumnStatsData": (_HISTOGRAM,),
    "NotificationEventRequest": (
        Field(4, "catName", "string"),
        Field(5, "dbName", "string"),
        Field(6, "tableNames", "list<string>"),
        Field(7, "eventTypeList", "list<string>"),
    ),
    "NotificationEventsCountRequest": (Field(6, "tableNames", "list<string>"),),
    "PartitionsByExprRequest": (
        Field(10, _SKIP_COLUMNS, "bool"),
        Field(11, _INCLUDE, "string"),
        Field(12, _EXCLUDE, "string"),
    ),
    "PartitionsRequest": (
        Field(7, _SKIP_COLUMNS, "bool"),
        Field(8, _INCLUDE, "string"),
        Field(9, _EXCLUDE, "string"),
    ),
    "ShowCompactRequest": (
        Field(1, "id", "i64"),
        Field(2, "poolName", "string"),
        Field(3, "dbName", "string"),
        Field(4, "tbName", "string"),
        Field(5, "partName", "string"),
        Field(6, "type", "i32"),
        Field(7, "state", "string"),
        Field(8, "limit", "i64"),
        Field(9, "order", "string"),
    ),
    "ShowCompactResponseElement": (
        Field(20, "poolName", "string"),
        Field(21, "nextTxnId", "i64"),
        Field(22, "txnId", "i64"),
        Field(23, "commitTime", "i64"),
        Field(24, "hightestWriteId", "i64"),
    ),
    "TimestampColumnStatsData": (_HISTOGRAM,),
    "TableMeta": (Field(6, "ownerName", "string"), Field(7, "ownerType", "i32")),
}
"""Fields that 4.x added to structs of the published bindings."""

STRUCTS: dict[str, tuple[Field, ...]] = {
    "AbortCompactionRequest": (
        Field(1, "compactionIds", "list<i64>"),
        Field(2, "type", "string"),
        Field(3, "poolName", "string"),
    ),
    "AbortCompactionResponseElement": (
        Field(1, "compactionId", "i64"),
        Field(2, "status", "string"),
        Field(3, "message", "string"),
    ),
    "AbortCompactResponse": (
        Field(1, "abortedcompacts", "map<i64,AbortCompactionResponseElement>"),
    ),
    "AlterDatabaseRequest": (
        Field(1, "oldDbName", "string"),
        Field(2, "newDb", "Database"),
    ),
    "AlterDataConnectorRequest": (
        Field(1, "connectorName", "string"),
        Field(2, "newConnector", "DataConnector"),
    ),
    "AppendPartitionsRequest": (
        Field(1, "catalogName", "string"),
        Field(2, "dbName", "string"),
        Field(3, "tableName", "string"),
        Field(4, "name", "string"),
        Field(5, "partVals", "list<string>"),
        Field(6, "environmentContext", "EnvironmentContext"),
    ),
    "DeleteColumnStatisticsRequest": (
        Field(1, "cat_name", "string"),
        Field(2, "db_name", "string"),
        Field(3, "tbl_name", "string"),
        Field(4, "part_names", "list<string>"),
        Field(5, "col_names", "list<string>"),
        Field(6, "engine", "string"),
        Field(7, "tableLevel", "bool"),
    ),
    "DropDataConnectorRequest": (
        Field(1, "connectorName", "string"),
        Field(2, "ifNotExists", "bool"),
        Field(3, "checkReferences", "bool"),
    ),
    "DropPartitionRequest": (
        Field(1, "catName", "string"),
        Field(2, "dbName", "string"),
        Field(3, "tblName", "string"),
        Field(4, "partName", "string"),
        Field(5, "partVals", "list<string>"),
        Field(6, "deleteData", "bool"),
        Field(7, "environmentContext", "EnvironmentContext"),
    ),
    "DropTableRequest": (
        Field(1, "catalogName", "string"),
        Field(2, "dbName", "string"),
        Field(3, "tableName", "string"),
        Field(4, "deleteData", "bool"),
        Field(5, "envContext", "EnvironmentContext"),
        Field(6, "dropPartitions", "bool"),
    ),
    "GetDatabaseObjectsRequest": (
        Field(1, "catalogName", "string"),
        Field(2, "pattern", "string"),
    ),
    "GetDatabaseObjectsResponse": (Field(1, "databases", "list<Database>"),),
    "GetFunctionsRequest": (
        Field(1, "dbName", "string"),
        Field(2, "catalogName", "string"),
        Field(3, "pattern", "string"),
        Field(4, "returnNames", "bool"),
    ),
    "GetFunctionsResponse": (
        Field(1, "function_names", "list<string>"),
        Field(2, "functions", "list<Function>"),
    ),
    "GetPartitionsByFilterRequest": (
        Field(1, "catName", "string"),
        Field(2, "dbName", "string"),
        Field(3, "tblName", "string"),
        Field(4, "filter", "string"),
        Field(5, "maxParts", "i16"),
        Field(6, _SKIP_COLUMNS, "bool"),
        Field(7, _INCLUDE, "string"),
        Field(8, _EXCLUDE, "string"),
    ),
    "PropertyGetRequest": (
        Field(1, "nameSpace", "string"),
        Field(2, "mapPrefix", "string"),
        Field(3, "mapPredicate", "string"),
        Field(4, "mapSelection", "list<string>"),
    ),
    "PropertyGetResponse": (Field(1, "properties", "map<string,map<string,string>>"),),
    "PropertySetRequest": (
        Field(1, "nameSpace", "string"),
        Field(2, "propertyMap", "map<string,string>"),
    ),
    "ReplayedTxnsForPolicyResult": (Field(1, "replTxnMapEntry", "map<string,string>"),),
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
