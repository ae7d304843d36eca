"""Calls about packages, functions, privileges, schedules, metrics, master keys and the server."""

from __future__ import annotations

from typing import Any

from hms_bridge.wire.structs import Struct, hive
from integration.recorded.objects import DATABASE, Asked, T


def server(ask: Asked) -> None:
    for name in ("aliveSince", "getStatusDetails", "getCounters", "getOptions"):
        ask(name)
    for name in ("getCounter", "getOption"):
        ask(name, key="nope")


def packages(ask: Asked) -> None:
    def package(name: str, **fields: str) -> Struct:
        return hive.AddPackageRequest(**{
            "catName": "hive", "dbName": DATABASE, "packageName": name, "ownerName": "ann",
            "header": "h", "body": "b", **fields,
        })  # fmt: skip

    def named(name: str, database: str = DATABASE) -> dict[str, str]:
        return {"catName": "hive", "dbName": database, "packageName": name}

    def all_of(database: str = DATABASE) -> None:
        request = hive.ListPackageRequest(catName="hive", dbName=database)
        ask("get_all_packages", request=request)

    def find(name: str, database: str = DATABASE) -> None:
        ask("find_package", request=hive.GetPackageRequest(**named(name, database)))

    def drop(name: str, database: str = DATABASE) -> None:
        ask("drop_package", request=hive.DropPackageRequest(**named(name, database)))

    ask("add_package", request=package("p"))
    find("p")
    ask("add_package", request=package("p", body="other"))
    find("p")
    ask("add_package", request=package("Upper"))
    all_of()
    ask("add_package", request=package("q", dbName="nope"))
    find("nope")
    find("p", "nope")
    drop("nope")
    drop("p", "nope")
    drop("p")
    all_of()
    procedure = hive.StoredProcedureRequest(catName="hive", dbName=DATABASE, procName="nope")
    for name in ("get_stored_procedure", "drop_stored_procedure"):
        ask(name, request=procedure)


def functions(ask: Asked) -> None:
    for name in ("f1", "f2"):
        ask("create_function", func=hive.Function(
            functionName=name, dbName=DATABASE, className="C", ownerName="ann", ownerType=1,
            functionType=1, resourceUris=[hive.ResourceUri(resourceType=1, uri="file:/x.jar")],
        ))  # fmt: skip
    for fields in (
        {"pattern": "*", "returnNames": True}, {"pattern": "f1", "returnNames": False},
        {"pattern": None}, {"pattern": "*", "dbName": "nope"},
    ):  # fmt: skip
        request = hive.GetFunctionsRequest(**{"dbName": DATABASE, "catalogName": "hive", **fields})
        ask("get_functions_req", request=request)


def roles(ask: Asked) -> None:
    def change(kind: int | None, role: str = "r", **fields: Any) -> None:
        ask("grant_revoke_role", request=hive.GrantRevokeRoleRequest(**{
            "requestType": kind, "roleName": role, "principalName": "ann", "principalType": 1,
            "grantor": "g", "grantorType": 1, "grantOption": False, **fields,
        }))  # fmt: skip

    def roles_of() -> None:
        request = hive.GetRoleGrantsForPrincipalRequest(principal_name="ann", principal_type=1)
        ask("get_role_grants_for_principal", request=request)

    ask("create_role", role=hive.Role(roleName="r", ownerName="g", createTime=1))
    change(1)
    roles_of()
    change(1)
    change(1, "nope")
    change(1, "r", principalName="r", principalType=2)
    change(1, "r", principalName="bob", grantOption=True)
    change(2, "r", principalName="bob", grantOption=True)
    change(2)
    change(2)
    change(2, "nope")
    change(None)
    roles_of()


def privileges(ask: Asked) -> None:
    table = hive.HiveObjectRef(objectType=3, dbName=DATABASE, objectName=T)

    def bag(*names: str) -> Struct:
        return hive.PrivilegeBag(privileges=[hive.HiveObjectPrivilege(
            hiveObject=table, principalName=name, principalType=1, authorizer="SQL",
            grantInfo=hive.PrivilegeGrantInfo(
                privilege="SELECT", createTime=1, grantor="g", grantorType=1, grantOption=False
            ),
        ) for name in names])  # fmt: skip

    def listed(name: str) -> None:
        ask("list_privileges", principal_name=name, principal_type=1, hiveObject=table)

    def refresh(of: Struct, given: Struct | None, authorizer: str = "SQL") -> None:
        request = hive.GrantRevokePrivilegeRequest(requestType=1, privileges=given)
        ask(
            "refresh_privileges", objToRefresh=of, authorizer=authorizer, grantRequest=request
        )  # fmt: skip

    ask("grant_privileges", privileges=bag("ann", "bob"))
    refresh(table, bag("ann", "cid"))
    for name in ("ann", "bob", "cid"):
        listed(name)
    refresh(table, bag("ann"), "Other")
    refresh(hive.HiveObjectRef(objectType=3, dbName=DATABASE, objectName="nope"), bag())
    refresh(hive.HiveObjectRef(objectType=1), bag())
    refresh(table, bag())
    listed("ann")


def schedules(ask: Asked) -> None:
    def maintain(kind: int, name: str = "s", **fields: Any) -> None:
        query = hive.ScheduledQuery(**{
            "scheduleKey": hive.ScheduledQueryKey(scheduleName=name, clusterNamespace="n"),
            "enabled": True, "schedule": "0 0 0 1 1 ? 2035", "user": "u", "query": "select 1",
            **fields,
        })  # fmt: skip
        request = hive.ScheduledQueryMaintenanceRequest(type=kind, scheduledQuery=query)
        ask("scheduled_query_maintenance", request=request)

    def get(name: str = "s") -> None:
        key = hive.ScheduledQueryKey(scheduleName=name, clusterNamespace="n")
        ask("get_scheduled_query", scheduleKey=key)

    def poll() -> Any:
        request = hive.ScheduledQueryPollRequest(clusterNamespace="n")
        return ask("scheduled_query_poll", request=request)

    def progress(execution: int, state: int, **fields: str) -> None:
        ask("scheduled_query_progress", info=hive.ScheduledQueryProgressInfo(
            scheduledExecutionId=execution, state=state, executorQueryId="q", **fields
        ))  # fmt: skip

    maintain(1)
    get()
    maintain(1)
    maintain(1, "bad", schedule="nonsense")
    maintain(2, query="select 2", enabled=False)
    get()
    maintain(2, "nope")
    maintain(3, "nope")
    maintain(2, enabled=True, nextExecution=7)
    execution = poll().executionId
    poll()
    progress(execution, 1)
    progress(execution, 3, errorMessage="e")
    progress(execution, 1)
    progress(12345, 1)
    _metrics(ask, execution)
    maintain(3)
    get()


def _metrics(ask: Asked, execution: int) -> None:
    def add(number: int, **fields: Any) -> None:
        metrics = hive.ReplicationMetrics(**{
            "scheduledExecutionId": number, "policy": "p", "dumpExecutionId": 1,
            "metadata": '{"dbName":"d"}', "progress": '{"status":"SUCCESS"}', **fields,
        })  # fmt: skip
        ask(
            "add_replication_metrics",
            replicationMetricList=hive.ReplicationMetricList(replicationMetricList=[metrics]),
        )

    def get(**fields: Any) -> None:
        request = hive.GetReplicationMetricsRequest(**fields)
        ask("get_replication_metrics", rqst=request)

    add(execution)
    add(execution, progress='{"status":"FAILED"}')
    add(execution + 1)
    add(execution + 2, messageFormat="json")
    get(policy="p")
    get(scheduledExecutionId=execution)


def master_keys(ask: Asked) -> None:
    number = ask("add_master_key", key="k")
    ask("update_master_key", seq_number=number, key="other")
    ask("get_master_keys")
    ask("update_master_key", seq_number=number + 99, key="x")
    ask("remove_master_key", key_seq=number)
    ask("remove_master_key", key_seq=number)
    ask("get_master_keys")
