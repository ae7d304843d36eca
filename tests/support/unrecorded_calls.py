"""Calls that change something, of methods that the first recording has no such call of.

Each case asks for what it needs, in its turn, and gives the arguments of its call.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hms_bridge.wire.structs import Struct, hive

Ask = Callable[..., Any]
"""Sends a method by its name and its arguments by theirs; what it answers."""
Case = Callable[[Ask], dict[str, Any]]

DATABASE = "unrecorded"
_T, _A = "t", "a"
"""Tables of it: with partitions 1 to 9, transactional."""
_CONTEXT: dict[str, Any] = {"environment_context": None}
_HERE = {"dbname": DATABASE}
_OF_T = {"db_name": DATABASE, "tbl_name": _T}


def prepare(ask: Ask) -> None:
    """What all of them are about."""
    ask(
        "create_database",
        database=hive.Database(name=DATABASE, parameters={"repl.source.for": "p"}),
    )
    ask("create_table", tbl=_table(_T, keys=("ds",)))
    ask("create_table", tbl=_table(_A, parameters={"transactional": "true"}, like=_ORC))
    ask("add_partitions", new_parts=[_partition(str(value)) for value in range(1, 10)])
    ask("create_resource_plan", request=hive.WMCreateResourcePlanRequest(
        resourcePlan=hive.WMResourcePlan(name="p", queryParallelism=4)
    ))  # fmt: skip
    ask("create_dataconnector", connector=_connector("c"))


_ORC = {
    "inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
}


def _storage(like: dict[str, str] | None = None) -> Struct:
    formats = like or {"inputFormat": "i", "outputFormat": "o"}
    return hive.StorageDescriptor(
        cols=[hive.FieldSchema(name="c", type="int")], parameters={}, bucketCols=[], sortCols=[],
        serdeInfo=hive.SerDeInfo(serializationLib="s", parameters={}), **formats,
    )  # fmt: skip


def _table(
    name: str,
    keys: tuple[str, ...] = (),
    parameters: dict[str, str] | None = None,
    like: dict[str, str] | None = None,
) -> Struct:
    return hive.Table(
        dbName=DATABASE, tableName=name, sd=_storage(like), tableType="MANAGED_TABLE",
        partitionKeys=[hive.FieldSchema(name=key, type="string") for key in keys],
        parameters=parameters or {},
    )  # fmt: skip


def _partition(value: str, table: str = _T) -> Struct:
    return hive.Partition(
        values=[value], dbName=DATABASE, tableName=table, sd=_storage(), parameters={"v": value}
    )


def _statistics(partition: str) -> Struct:
    counts = hive.LongColumnStatsData(lowValue=1, highValue=2, numNulls=0, numDVs=2)
    return hive.ColumnStatistics(
        statsDesc=hive.ColumnStatisticsDesc(
            isTblLevel=False, dbName=DATABASE, tableName=_T, partName=partition
        ),
        statsObj=[hive.ColumnStatisticsObj(
            colName="c", colType="int", statsData=hive.ColumnStatisticsData(longStats=counts)
        )],
        engine="hive",
    )  # fmt: skip


def _connector(name: str, url: str = "u") -> Struct:
    return hive.DataConnector(name=name, type="mysql", url=url)


def _open(ask: Ask) -> int:
    request = hive.OpenTxnRequest(num_txns=1, user="u", hostname="h")
    txn: int = ask("open_txns", rqst=request).txn_ids[0]
    return txn


def _written(ask: Ask) -> tuple[int, int]:
    """A transaction and its write id."""
    txn = _open(ask)
    request = hive.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName=_A, txnIds=[txn])
    return txn, ask("allocate_table_write_ids", rqst=request).txnToWriteIds[0].writeId


def _compaction(ask: Ask) -> int:
    request = hive.CompactionRequest(dbname=DATABASE, tablename=_A, type=2)
    number: int = ask("compact2", rqst=request).id
    return number


def _inserted(ask: Ask) -> Struct:
    place = ask("get_table", dbname=DATABASE, tbl_name=_A).sd.location
    return hive.InsertEventRequestData(filesAdded=[f"{place}/f"], filesAddedChecksum=["1"])


def _notification(ask: Ask) -> Struct:
    txn, write_id = _written(ask)
    return hive.WriteNotificationLogRequest(
        txnId=txn, writeId=write_id, db=DATABASE, table=_A, fileInfo=_inserted(ask)
    )


def _pool(path: str) -> Struct:
    return hive.WMPool(resourcePlanName="p", poolPath=path, allocFraction=0.1, queryParallelism=1)


def _made_pool(ask: Ask, path: str) -> str:
    ask("create_wm_pool", request=hive.WMCreatePoolRequest(pool=_pool(path)))
    return path


def _trigger(name: str, condition: str = "X > 1") -> Struct:
    return hive.WMTrigger(
        resourcePlanName="p", triggerName=name, triggerExpression=condition,
        actionExpression="KILL",
    )  # fmt: skip


def _made_trigger(ask: Ask, name: str) -> str:
    ask("create_wm_trigger", request=hive.WMCreateTriggerRequest(trigger=_trigger(name)))
    return name


def _mapping(ask: Ask, name: str) -> Struct:
    return hive.WMMapping(
        resourcePlanName="p", entityType="user", entityName=name,
        poolPath=_made_pool(ask, f"for_{name}"), ordering=1,
    )  # fmt: skip


def _made_mapping(ask: Ask, name: str) -> Struct:
    mapping = _mapping(ask, name)
    request = hive.WMCreateOrUpdateMappingRequest(mapping=mapping, update=False)
    ask("create_or_update_wm_mapping", request=request)
    return mapping


def _joined(ask: Ask) -> dict[str, Any]:
    pool, trigger = _made_pool(ask, "joined"), _made_trigger(ask, "joins")
    return {"request": hive.WMCreateOrDropTriggerToPoolMappingRequest(
        resourcePlanName="p", triggerName=trigger, poolPath=pool, drop=False
    )}  # fmt: skip


def _altered_pool(ask: Ask) -> dict[str, Any]:
    pool = hive.WMNullablePool(resourcePlanName="p", queryParallelism=2)
    return {"request": hive.WMAlterPoolRequest(pool=pool, poolPath=_made_pool(ask, "altered"))}


def _package(name: str) -> Struct:
    return hive.AddPackageRequest(
        catName="hive", dbName=DATABASE, packageName=name, ownerName="o", header="h", body="b"
    )


def _dropped_package(ask: Ask) -> dict[str, Any]:
    ask("add_package", request=_package("dropped"))
    return {"request": hive.DropPackageRequest(
        catName="hive", dbName=DATABASE, packageName="dropped"
    )}  # fmt: skip


def _specified_partitions(_: Ask) -> dict[str, Any]:
    listed = hive.PartitionListComposingSpec(partitions=[_partition("21"), _partition("22")])
    return {"new_parts": [hive.PartitionSpec(
        dbName=DATABASE, tableName=_T, rootPath="", partitionList=listed
    )]}  # fmt: skip


def _reference() -> Struct:
    return hive.HiveObjectRef(objectType=2, dbName=DATABASE, objectName=_T)


def _bag(*names: str) -> Struct:
    return hive.PrivilegeBag(privileges=[hive.HiveObjectPrivilege(
        hiveObject=_reference(), principalName=name, principalType=1, authorizer="SQL",
        grantInfo=hive.PrivilegeGrantInfo(
            privilege="SELECT", createTime=1, grantor="g", grantorType=1, grantOption=False
        ),
    ) for name in names])  # fmt: skip


def _revoked(ask: Ask) -> dict[str, Any]:
    ask("grant_privileges", privileges=_bag("ann", "bob"))
    return {"privileges": _bag("ann", "bob")}


def _refreshed(ask: Ask) -> dict[str, Any]:
    ask("grant_privileges", privileges=_bag("cid", "dan"))
    request = hive.GrantRevokePrivilegeRequest(privileges=_bag("cid", "eve"))
    return {"objToRefresh": _reference(), "authorizer": "SQL", "grantRequest": request}


def _granted_role(ask: Ask) -> dict[str, Any]:
    ask("create_role", role=hive.Role(roleName="r", ownerName="o", createTime=1))
    return {"request": hive.GrantRevokeRoleRequest(
        requestType=1, roleName="r", principalName="ann", principalType=1, grantor="g",
        grantorType=1, grantOption=False,
    )}  # fmt: skip


def _deltas(kind: int) -> Struct:
    return hive.CompactionMetricsDataStruct(
        dbname=DATABASE, tblname=_T, partitionname="ds=1", type=kind, metricvalue=12, version=1,
        threshold=1,
    )  # fmt: skip


def _removed_deltas(ask: Ask) -> dict[str, Any]:
    ask("update_compaction_metrics_data", data=_deltas(1))
    return {"request": hive.CompactionMetricsDataRequest(
        dbName=DATABASE, tblName=_T, partitionName="ds=1", type=1
    )}  # fmt: skip


def _scheduled(name: str) -> Struct:
    query = hive.ScheduledQuery(
        scheduleKey=hive.ScheduledQueryKey(scheduleName=name, clusterNamespace=name), enabled=True,
        schedule="* * * * * ? *", user="u", query="select 1",
    )  # fmt: skip
    return hive.ScheduledQueryMaintenanceRequest(type=1, scheduledQuery=query)


def _polled(ask: Ask, name: str) -> Struct:
    request = _scheduled(name)
    ask("scheduled_query_maintenance", request=request)
    request.type, request.scheduledQuery.nextExecution = 2, 7
    ask("scheduled_query_maintenance", request=request)
    return hive.ScheduledQueryPollRequest(clusterNamespace=name)


def _progress(ask: Ask) -> dict[str, Any]:
    execution = ask("scheduled_query_poll", request=_polled(ask, "progress")).executionId
    info = hive.ScheduledQueryProgressInfo(scheduledExecutionId=execution, state=1)
    return {"info": info}


def _truncated(ask: Ask) -> dict[str, Any]:
    _, write_id = _written(ask)
    return {"req": hive.TruncateTableRequest(
        dbName=DATABASE, tableName=_A, writeId=write_id, validWriteIdList=f"{DATABASE}.{_A}:9:9::"
    )}  # fmt: skip


def _locked(ask: Ask) -> dict[str, Any]:
    part = hive.LockComponent(
        type=1, level=2, dbname=DATABASE, tablename=_T, isTransactional=True, operationType=1
    )
    request = hive.LockRequest(component=[part], user="u", hostname="h")
    return {"rqst": hive.UnlockRequest(lockid=ask("lock", rqst=request).lockid)}


def _taken_entry(ask: Ask) -> dict[str, Any]:
    _compaction(ask)
    request = hive.FindNextCompactRequest(workerId="h-1", workerVersion="4")
    entry = ask("find_next_compact2", rqst=request).ci
    entry.highestWriteId = 1
    return {"cr": entry, "txn_id": _open(ask)}


def _counted(ask: Ask) -> dict[str, Any]:
    view = _table("view")
    view.tableType, view.viewOriginalText, view.viewExpandedText = "MATERIALIZED_VIEW", "s", "s"
    view.creationMetadata = hive.CreationMetadata(
        catName="hive", dbName=DATABASE, tblName="view", tablesUsed={f"{DATABASE}.{_A}"},
    )  # fmt: skip
    ask("create_table", tbl=view)
    number = ask("get_table", dbname=DATABASE, tbl_name=_A).id
    return {"req": hive.UpdateTransactionalStatsRequest(
        tableId=number, insertCount=3, updatedCount=2, deletedCount=1
    )}  # fmt: skip


def _cleanup(ask: Ask) -> dict[str, Any]:
    txn = _open(ask)
    given = hive.AllocateTableWriteIdsRequest(dbName=DATABASE, tableName="never", txnIds=[txn])
    ask("allocate_table_write_ids", rqst=given)
    place = ask("get_database", name=DATABASE).locationUri
    request = hive.CompactionRequest(
        dbname=DATABASE, tablename="never", type=2, runas="hive",
        properties={"location": f"{place}/never", "ifPurge": "true"},
    )  # fmt: skip
    return {"o1": request, "o2": 1, "o3": txn}


def _key(ask: Ask) -> int:
    number: int = ask("add_master_key", key="k")
    return number


def _with_statistics(ask: Ask, partition: str, request: Any) -> Any:
    ask("update_partition_column_statistics", stats_obj=_statistics(partition))
    return request


def _dropped_connector(ask: Ask) -> dict[str, Any]:
    ask("create_dataconnector", connector=_connector("dropped"))
    return {"dropDcReq": hive.DropDataConnectorRequest(connectorName="dropped")}


def _made_table(ask: Ask, name: str) -> str:
    """With rows."""
    ask("create_table", tbl=_table(name))
    _fill(ask("get_table", dbname=DATABASE, tbl_name=name).sd.location)
    return name


def _with_rows(ask: Ask, value: str) -> str:
    """A partition."""
    _fill(ask("get_partition", **_OF_T, part_vals=[value]).sd.location)
    return value


def _fill(place: str) -> str:
    folder = Path(place.removeprefix("file:"))
    for name in ("one", "two"):
        (folder / name).write_text(f"{place}/{name}")
    return place


def _recycled(ask: Ask) -> dict[str, Any]:
    ask("create_table", tbl=_table("recycled"))
    place = _fill(ask("get_table", dbname=DATABASE, tbl_name="recycled").sd.location)
    return {"request": hive.CmRecycleRequest(dataPath=place, purge=False)}


CASES: dict[str, Case] = {
    "abort_Compactions": lambda ask: {
        "rqst": hive.AbortCompactionRequest(compactionIds=[_compaction(ask)])
    },
    "add_dynamic_partitions": lambda ask: {"rqst": hive.AddDynamicPartitions(
        **dict(zip(("txnid", "writeid"), _written(ask), strict=True)), dbname=DATABASE,
        tablename=_A, partitionnames=["x=1", "x=2"], operationType=2,
    )},
    "add_package": lambda _: {"request": _package("added")},
    "add_partitions_pspec": _specified_partitions,
    "add_replication_metrics": lambda _: {
        "replicationMetricList": hive.ReplicationMetricList(replicationMetricList=[
            hive.ReplicationMetrics(
                scheduledExecutionId=number, policy="p", dumpExecutionId=1, metadata="{}",
                progress="{}",
            ) for number in (1, 2)
        ])
    },
    "add_write_ids_to_min_history": lambda ask: {
        "txnId": _open(ask), "writeIds": {f"{DATABASE}.{_A}": 1, f"{DATABASE}.{_T}": 1}
    },
    "add_write_notification_log": lambda ask: {"rqst": _notification(ask)},
    "add_write_notification_log_in_batch": lambda ask: {
        "rqst": hive.WriteNotificationLogBatchRequest(
            catalog="hive", db=DATABASE, table=_A,
            requestList=[_notification(ask), _notification(ask)],
        )
    },
    "alter_database_req": lambda _: {"alterDbReq": hive.AlterDatabaseRequest(
        oldDbName=DATABASE,
        newDb=hive.Database(name=DATABASE, parameters={"repl.source.for": "p", "k": "v"}),
    )},
    "alter_dataconnector": lambda _: {"name": "c", "connector": _connector("c", "v")},
    "alter_dataconnector_req": lambda _: {"alterReq": hive.AlterDataConnectorRequest(
        connectorName="c", newConnector=_connector("c", "w")
    )},
    "alter_partitions_with_environment_context": lambda _: {
        **_OF_T, **_CONTEXT, "new_parts": [_partition("1"), _partition("2")]
    },
    "alter_resource_plan": lambda _: {"request": hive.WMAlterResourcePlanRequest(
        resourcePlanName="p", resourcePlan=hive.WMNullableResourcePlan(queryParallelism=3)
    )},
    "alter_wm_pool": _altered_pool,
    "alter_wm_trigger": lambda ask: {"request": hive.WMAlterTriggerRequest(
        trigger=_trigger(_made_trigger(ask, "altered"), "Y > 2")
    )},
    "append_partition_by_name_with_environment_context": lambda _: {
        **_OF_T, **_CONTEXT, "part_name": "ds=31"
    },
    "append_partition_req": lambda _: {"appendPartitionsReq": hive.AppendPartitionsRequest(
        dbName=DATABASE, tableName=_T, partVals=["32"]
    )},
    "append_partition_with_environment_context": lambda _: {
        **_OF_T, **_CONTEXT, "part_vals": ["33"]
    },
    "cm_recycle": _recycled,
    "compact": lambda _: {
        "rqst": hive.CompactionRequest(
            dbname=DATABASE, tablename=_T, partitionname="ds=9", type=1, runas="u",
            initiatorId="i", initiatorVersion="v", poolName="p", orderByClause="c",
        )
    },
    "create_database_req": lambda _: {
        "createDatabaseRequest": hive.CreateDatabaseRequest(databaseName="made")
    },
    "create_dataconnector_req": lambda _: {
        "connectorReq": hive.CreateDataConnectorRequest(connector=_connector("made"))
    },
    "create_or_drop_wm_trigger_to_pool_mapping": _joined,
    "create_or_update_wm_mapping": lambda ask: {"request": hive.WMCreateOrUpdateMappingRequest(
        mapping=_mapping(ask, "ann"), update=False
    )},
    "create_table_with_constraints": lambda _: {
        "tbl": _table("constrained"), "primaryKeys": [hive.SQLPrimaryKey(
            table_db=DATABASE, table_name="constrained", column_name="c", key_seq=1, pk_name="pk",
        )], "foreignKeys": [], "uniqueConstraints": [], "notNullConstraints": [],
        "defaultConstraints": [], "checkConstraints": [],
    },
    "create_table_with_environment_context": lambda _: {"tbl": _table("made"), **_CONTEXT},
    "create_wm_pool": lambda _: {"request": hive.WMCreatePoolRequest(pool=_pool("made"))},
    "create_wm_trigger": lambda _: {
        "request": hive.WMCreateTriggerRequest(trigger=_trigger("made"))
    },
    "delete_column_statistics_req": lambda ask: {"req": _with_statistics(
        ask, "ds=2", hive.DeleteColumnStatisticsRequest(
            db_name=DATABASE, tbl_name=_T, part_names=["ds=2"], engine="hive"
        )
    )},
    "drop_dataconnector_req": _dropped_connector,
    "drop_package": _dropped_package,
    "drop_partition_by_name_with_environment_context": lambda ask: {
        **_OF_T, **_CONTEXT, "part_name": f"ds={_with_rows(ask, '4')}", "deleteData": True
    },
    "drop_partition_req": lambda ask: {"dropPartitionReq": hive.DropPartitionRequest(
        dbName=DATABASE, tblName=_T, partVals=[_with_rows(ask, "5")], deleteData=True
    )},
    "drop_partition_with_environment_context": lambda ask: {
        **_OF_T, **_CONTEXT, "part_vals": [_with_rows(ask, "6")], "deleteData": True
    },
    "drop_table_req": lambda ask: {"dropTableReq": hive.DropTableRequest(
        dbName=DATABASE, tableName=_made_table(ask, "first"), deleteData=True
    )},
    "drop_table_with_environment_context": lambda ask: {
        **_HERE, **_CONTEXT, "name": _made_table(ask, "second"), "deleteData": True
    },
    "drop_wm_mapping": lambda ask: {
        "request": hive.WMDropMappingRequest(mapping=_made_mapping(ask, "bob"))
    },
    "drop_wm_pool": lambda ask: {"request": hive.WMDropPoolRequest(
        resourcePlanName="p", poolPath=_made_pool(ask, "dropped")
    )},
    "drop_wm_trigger": lambda ask: {"request": hive.WMDropTriggerRequest(
        resourcePlanName="p", triggerName=_made_trigger(ask, "dropped")
    )},
    "fire_listener_event": lambda ask: {"rqst": hive.FireEventRequest(
        successful=True, dbName=DATABASE, tableName=_A,
        data=hive.FireEventRequestData(insertData=_inserted(ask)),
    )},
    "grant_revoke_role": _granted_role,
    "refresh_privileges": _refreshed,
    "remove_compaction_metrics_data": _removed_deltas,
    "remove_master_key": lambda ask: {"key_seq": _key(ask)},
    "revoke_privileges": _revoked,
    "scheduled_query_maintenance": lambda _: {"request": _scheduled("made")},
    "scheduled_query_poll": lambda ask: {"request": _polled(ask, "polled")},
    "scheduled_query_progress": _progress,
    "submit_for_cleanup": _cleanup,
    "truncate_table_req": _truncated,
    "unlock": _locked,
    "update_compaction_metrics_data": lambda _: {"data": _deltas(2)},
    "update_compactor_state": _taken_entry,
    "update_master_key": lambda ask: {"seq_number": _key(ask), "key": "other"},
    "update_partition_column_statistics_req": lambda _: {
        "req": hive.SetPartitionsStatsRequest(colStats=[_statistics("ds=2")], engine="hive")
    },
    "update_transaction_statistics": _counted,
}  # fmt: skip
