"""Fields of requests that have no effect here, and why: all others are read, or refused by name.

A name is ``Struct.field``, ``Struct.field@method`` where only that method ignores it, or
``.argument@method``. What lies in an ignored field is ignored with it. A test sends every answered
method every field of its request, and holds that this table has just those that nobody reads.
"""

from __future__ import annotations

from collections.abc import Mapping

IGNORED: Mapping[str, str] = {
    "Hive counts the files of a new partition whatever it says, and nobody else reads it.": """
        .environment_context@add_partition_with_environment_context
        .environment_context@append_partition_with_environment_context
        .environment_context@append_partition_by_name_with_environment_context
        AddPartitionsRequest.environmentContext AppendPartitionsRequest.environmentContext
    """,
    "Hive puts it into its SQL as it comes; the order is always that of its default.": """
        ShowCompactRequest.order
    """,
    "A table goes with its partitions.": "DropTableRequest.dropPartitions",
    "Of a soft drop, which is refused where a table would need one.": "DropDatabaseRequest.txnId",
    "The directories of a database go if they are empty.": "DropDatabaseRequest.deleteManagedDir",
    "A cache in front of the metastore asks by it whether what it holds is new enough; the answer "
    "comes from the database, and is.": """
        PartitionsRequest.validWriteIdList PartitionsByExprRequest.validWriteIdList
        GetPartitionsByNamesRequest.validWriteIdList GetPartitionNamesPsRequest.validWriteIdList
        GetPartitionsPsWithAuthRequest.validWriteIdList GetPartitionsRequest.validWriteIdList
        PartitionValuesRequest.validWriteIdList GetFieldsRequest.validWriteIdList
        GetSchemaRequest.validWriteIdList PrimaryKeysRequest.validWriteIdList
        ForeignKeysRequest.validWriteIdList UniqueConstraintsRequest.validWriteIdList
        NotNullConstraintsRequest.validWriteIdList DefaultConstraintsRequest.validWriteIdList
        CheckConstraintsRequest.validWriteIdList AllTableConstraintsRequest.validWriteIdList
        AddPartitionsRequest.validWriteIdList RenamePartitionRequest.validWriteIdList
        PartitionsRequest.id PartitionsByExprRequest.id GetPartitionsByNamesRequest.id
        GetPartitionNamesPsRequest.id GetPartitionsPsWithAuthRequest.id GetPartitionRequest.id
        GetFieldsRequest.id GetSchemaRequest.id GetTableRequest.id TableStatsRequest.id
        PrimaryKeysRequest.tableId ForeignKeysRequest.tableId UniqueConstraintsRequest.tableId
        NotNullConstraintsRequest.tableId DefaultConstraintsRequest.tableId
        CheckConstraintsRequest.tableId AllTableConstraintsRequest.tableId
    """,
    "Tables and places are stored as they are sent, and shown to everybody: nothing is translated "
    "by what a client understands.": """
        AlterTableRequest.processorCapabilities AlterTableRequest.processorIdentifier
        CreateTableRequest.processorCapabilities CreateTableRequest.processorIdentifier
        GetDatabaseRequest.processorCapabilities GetDatabaseRequest.processorIdentifier
        GetPartitionsRequest.processorCapabilities GetPartitionsRequest.processorIdentifier
        GetPartitionsByNamesRequest.processorCapabilities
        GetPartitionsByNamesRequest.processorIdentifier
        GetTablesRequest.processorIdentifier GetTableRequest.processorIdentifier
        GetTablesExtRequest.processorIdentifier
        CreateTableRequest.envContext@translate_table_dryrun
        CreateTableRequest.primaryKeys@translate_table_dryrun
        CreateTableRequest.foreignKeys@translate_table_dryrun
        CreateTableRequest.uniqueConstraints@translate_table_dryrun
        CreateTableRequest.notNullConstraints@translate_table_dryrun
        CreateTableRequest.defaultConstraints@translate_table_dryrun
        CreateTableRequest.checkConstraints@translate_table_dryrun
    """,
    "Partitions that went are told whole.": """
        DropPartitionsRequest.skipColumnSchemaForPartition
    """,
    "Of names alone there is nothing to leave out.": """
        PartitionsRequest.includeParamKeyPattern@fetch_partition_names_req
        PartitionsRequest.excludeParamKeyPattern@fetch_partition_names_req
        PartitionsRequest.skipColumnSchemaForPartition@fetch_partition_names_req
        PartitionsByExprRequest.includeParamKeyPattern@get_partition_names_req
        PartitionsByExprRequest.excludeParamKeyPattern@get_partition_names_req
        PartitionsByExprRequest.skipColumnSchemaForPartition@get_partition_names_req
    """,
    "A PartitionSpec has no place for privileges, and Hive sends none.": """
        GetPartitionsRequest.withAuth GetPartitionsRequest.user GetPartitionsRequest.groupNames
    """,
    "Columns that stand beside partitions count for each that has none, whatever this says.": """
        AddPartitionsRequest.skipColumnSchemaForPartition
        AlterPartitionsRequest.skipColumnSchemaForPartition
    """,
    "It names jars from which Hive's metastore would load a SerDe; columns are stored here.": """
        .environment_context@get_fields_with_environment_context
        .environment_context@get_schema_with_environment_context
        GetFieldsRequest.envContext GetSchemaRequest.envContext
    """,
    "Hive's metastore does not read it either.": """
        AbortCompactionRequest.type AbortCompactionRequest.poolName
        CheckLockRequest.txnid CheckLockRequest.elapsed_ms ShowLocksRequest.isExtended
        CompactionMetricsDataStruct.version LockRequest.locklessReadsEnabled
        PartitionSpec.rootPath PartitionSpec.writeId PartitionSpec.isStatsCompliant
        PartitionValuesRequest.partitionOrder
        PartitionsByExprRequest.order@get_partitions_by_expr
        PartitionsByExprRequest.order@get_partitions_spec_by_expr
        InsertEventRequestData.replace@add_write_notification_log
        InsertEventRequestData.replace@add_write_notification_log_in_batch
        InsertEventRequestData.partitionVal@add_write_notification_log
        InsertEventRequestData.partitionVal@add_write_notification_log_in_batch
        WriteNotificationLogBatchRequest.catalog
        GrantRevokePrivilegeRequest.requestType@refresh_privileges
        GrantRevokePrivilegeRequest.revokeGrantOption@refresh_privileges
        FireEventRequest.successful
    """,
    "Privileges of single partitions are granted, not sent with them.": """
        PartitionWithoutSD.privileges
    """,
    "The time is that of the call.": """
        RuntimeStat.createTime PrivilegeGrantInfo.createTime@grant_privileges
        PrivilegeGrantInfo.createTime@revoke_privileges
        PrivilegeGrantInfo.createTime@grant_revoke_privileges
        PrivilegeGrantInfo.createTime@refresh_privileges
    """,
    "Names alone say what is meant.": """
        FieldSchema.type@get_partition_values FieldSchema.comment@get_partition_values
        WMMapping.poolPath@drop_wm_mapping WMMapping.ordering@drop_wm_mapping
        CompactionInfoStruct.id@find_columns_with_stats
        CompactionInfoStruct.type@find_columns_with_stats
        CompactionInfoStruct.runas@find_columns_with_stats
        CompactionInfoStruct.properties@find_columns_with_stats
        CompactionInfoStruct.toomanyaborts@find_columns_with_stats
        CompactionInfoStruct.state@find_columns_with_stats
        CompactionInfoStruct.workerId@find_columns_with_stats
        CompactionInfoStruct.start@find_columns_with_stats
        CompactionInfoStruct.highestWriteId@find_columns_with_stats
        CompactionInfoStruct.errorMessage@find_columns_with_stats
        CompactionInfoStruct.hasoldabort@find_columns_with_stats
        CompactionInfoStruct.enqueueTime@find_columns_with_stats
        CompactionInfoStruct.retryRetention@find_columns_with_stats
        CompactionInfoStruct.poolname@find_columns_with_stats
        CompactionInfoStruct.numberOfBuckets@find_columns_with_stats
        CompactionInfoStruct.orderByClause@find_columns_with_stats
    """,
    "A new plan is disabled, and its default pool is the one that it gets.": """
        WMResourcePlan.status@create_resource_plan
        WMResourcePlan.defaultPoolPath@create_resource_plan
    """,
    "What a materialized view reads stands in its CreationMetadata; of its source tables only the "
    "names and definitions count.": """
        Table.accessType@update_creation_metadata Table.colStats@update_creation_metadata
        Table.dictionary@update_creation_metadata Table.fileMetadata@update_creation_metadata
        Table.privileges@update_creation_metadata Table.txnId@update_creation_metadata
        Table.requiredReadCapabilities@update_creation_metadata
        Table.requiredWriteCapabilities@update_creation_metadata
        Table.accessType@get_materialization_invalidation_info
        Table.colStats@get_materialization_invalidation_info
        Table.dictionary@get_materialization_invalidation_info
        Table.fileMetadata@get_materialization_invalidation_info
        Table.privileges@get_materialization_invalidation_info
        Table.txnId@get_materialization_invalidation_info
        Table.requiredReadCapabilities@get_materialization_invalidation_info
        Table.requiredWriteCapabilities@get_materialization_invalidation_info
    """,
    "It belongs to a refresh, which is refused.": """
        FireEventRequestData.refreshEvent FireEventRequest.tblParams
        FireEventRequest.batchPartitionValsForRefresh
    """,
    "Footers of files are not kept.": "GetPartitionsByNamesRequest.getFileMetadata",
    "It says whether the client moves files into its trash.": "CmRecycleRequest.purge",
    "No database is made over a data connector.": "DropDataConnectorRequest.checkReferences",
    "A renaming that keeps the old directory is refused; no other one needs it.": """
        RenamePartitionRequest.txnId
    """,
    "There are no counters, no profiles and no options.": """
        .key@getCounter .profileDurationInSec@getCpuProfile .key@getOption
    """,
    "Names of partitions are escaped: there are no characters that one cannot have.": """
        .throw_exception@partition_name_has_valid_characters
    """,
}
"""By the reason, a sentence for the page of methods, the names."""
