"""Every thrift method that changes something: hooks are asked and hear of it, or a reason is given.

Of the methods whose changes Hive's log has no event for, each is called here: refused once, when
nothing may change, and then let pass; and no secret that it brings stands in what hooks get.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.config.settings import EventSettings
from hms_bridge.errors import MetaError
from hms_bridge.hooks.port import Statements, VetoError
from hms_bridge.hooks.told_json import told_json
from hms_bridge.model.catalog import Column, Database, Storage, Table
from hms_bridge.model.event import EventType
from hms_bridge.model.hook import Change, HookEvent, PointType
from hms_bridge.server.serve import offered_names
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.wire.convert_catalog import table_to_struct
from hms_bridge.wire.structs import Struct, hive
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.stored_rows import all_rows, rows_of
from tests.support.told_points import START, listen
from tests.support.writing_methods import READING, REASONS, WRITES

HERE = "tests.server.test_every_change"
SECRET = "s3cret"
USER = 1
_OF_HOOKS = ("HMSB_HOOK_POINT", "HMSB_EVENT_HOOK", "HMSB_HOOK_HEARD", "SEQUENCE_TABLE")


class Guard:
    """Refuses the points that change the catalog, once the test says so."""

    is_refusing = False
    asked: list[Change] = []

    def before_change(self, change: Change) -> None:
        self.asked.append(change)
        if self.is_refusing:
            raise VetoError("not now")


class Inside:
    """Hears inside of the transaction, too."""

    told: list[HookEvent] = []

    def in_transaction(self, events: Sequence[HookEvent], statements: Statements) -> None:
        self.told.extend(events)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedMetastore]:
    """With database db, its table p of a partition column x, and its view v."""
    monkeypatch.setattr(Guard, "asked", [])
    monkeypatch.setattr(Inside, "told", [])
    events = EventSettings(
        pre_listeners=(f"{HERE}:Guard",), transactional_listeners=(f"{HERE}:Inside",)
    )
    with served_metastore(tmp_path, events=events) as served:
        listen(of(served))
        served.metastore.create_database(Database(name="db"))
        columns = (Column(name="a", type="int"),)
        keys = (Column(name="x", type="string"),)
        storage = Storage(columns=columns)
        served.metastore.create_table(
            Table(database_name="db", name="p", storage=storage, partition_columns=keys)
        )
        view = table_to_struct(Table(database_name="db", name="v", storage=storage))
        view.tableType = "MATERIALIZED_VIEW"
        view.viewOriginalText = view.viewExpandedText = "select a from db.p"
        served.call("create_table", tbl=view)
        served.call("create_function", func=function())
        yield served


def of(served: ServedMetastore) -> MetastoreService:
    assert isinstance(served.metastore, MetastoreService)
    return served.metastore


def function(**more: Any) -> Struct:
    fields = {"functionName": "f", "dbName": "db", "className": "org.example.F", "ownerName": "a",
              "ownerType": USER, "functionType": 1, "resourceUris": []} | more  # fmt: skip
    return hive.Function(**fields)


def connector(**more: Any) -> Struct:
    secrets = {"url": f"jdbc:mysql://h?password={SECRET}", "parameters": {"password": SECRET}}
    return hive.DataConnector(**{"name": "dc", "type": "mysql", **secrets, **more})


def role_request(kind: int) -> Struct:
    return hive.GrantRevokeRoleRequest(
        requestType=kind, roleName="r", principalName="bob", principalType=USER, grantor="hive",
        grantorType=USER, grantOption=False,
    )  # fmt: skip


def bag(name: str = "ann") -> Struct:
    info = hive.PrivilegeGrantInfo(
        privilege="SELECT", grantor="hive", grantorType=USER, grantOption=False
    )
    of_table = hive.HiveObjectRef(objectType=3, dbName="db", objectName="p")
    granted = hive.HiveObjectPrivilege(
        hiveObject=of_table, principalName=name, principalType=USER, authorizer="SQL",
        grantInfo=info,
    )  # fmt: skip
    return hive.PrivilegeBag(privileges=[granted])


def catalog(served: ServedMetastore, **more: Any) -> Struct:
    return hive.Catalog(name="c", locationUri=f"file:{served.warehouse}/c", **more)


def maintenance(kind: int) -> Struct:
    query = hive.ScheduledQuery(
        scheduleKey=hive.ScheduledQueryKey(scheduleName="q", clusterNamespace="ns"),
        enabled=True, schedule="0 * * * * ? *", user="ann", query=f"select '{SECRET}'",
    )  # fmt: skip
    return hive.ScheduledQueryMaintenanceRequest(type=kind, scheduledQuery=query)


def creation() -> Struct:
    return hive.CreationMetadata(
        catName="hive", dbName="db", tblName="v", tablesUsed=["db.p"], validTxnList="0:0::",
    )  # fmt: skip


def in_plan(part: str, **fields: Any) -> Struct:
    return getattr(hive, part)(resourcePlanName="w", **fields)


Call = tuple[str, dict[str, Any], str]
"""A method, its arguments, and what a refusal names."""


def of_catalogs(served: ServedMetastore) -> Iterator[Call]:
    dropped = hive.DropDataConnectorRequest(connectorName="dc")
    made = hive.CreateCatalogRequest(catalog=catalog(served))
    altered = hive.AlterCatalogRequest(name="c", newCat=catalog(served, description="d"))
    yield "create_catalog", {"catalog": made}, "create c"
    yield "alter_catalog", {"rqst": altered}, "alter c"
    yield "drop_catalog", {"catName": hive.DropCatalogRequest(name="c")}, "drop c"
    yield "create_dataconnector", {"connector": connector()}, "create dc"
    yield "alter_dataconnector", {"name": "dc", "connector": connector()}, "alter dc"
    yield "drop_dataconnector_req", {"dropDcReq": dropped}, "drop dc"
    request = hive.CreateDataConnectorRequest(connector=connector())
    yield "create_dataconnector_req", {"connectorReq": request}, "create dc"
    request = hive.AlterDataConnectorRequest(connectorName="dc", newConnector=connector())
    yield "alter_dataconnector_req", {"alterReq": request}, "alter dc"
    newer = function(className="org.example.G")
    yield "alter_function", {"dbName": "db", "funcName": "f", "newFunc": newer}, "alter f"
    named = {"catName": "hive", "dbname": "db", "tbl_name": "v"}
    yield "update_creation_metadata", {**named, "creation_metadata": creation()}, "update v"
    marked = {"db_name": "db", "tbl_name": "p", "part_vals": {"x": "1"}, "eventType": 1}
    yield "markPartitionForEvent", marked, "mark p"


def of_rights(_: ServedMetastore) -> Iterator[Call]:
    to_ann = {"principal_name": "ann", "principal_type": USER}
    given = {"grantor": "hive", "grantorType": USER, "grant_option": False}
    yield "create_role", {"role": hive.Role(roleName="r")}, "create r"
    yield "grant_role", {"role_name": "r", **to_ann, **given}, "grant r"
    yield "revoke_role", {"role_name": "r", **to_ann}, "revoke r"
    yield "grant_revoke_role", {"request": role_request(1)}, "grant r"
    yield "grant_revoke_role", {"request": role_request(2)}, "revoke r"
    yield "drop_role", {"role_name": "r"}, "drop r"
    table = "table [db, p]"
    yield "grant_privileges", {"privileges": bag()}, f"grant {table}"
    yield "revoke_privileges", {"privileges": bag()}, f"revoke {table}"
    for kind, verb in ((1, "grant"), (2, "revoke")):
        request = hive.GrantRevokePrivilegeRequest(requestType=kind, privileges=bag())
        yield "grant_revoke_privileges", {"request": request}, f"{verb} {table}"
    request = hive.GrantRevokePrivilegeRequest(requestType=1, privileges=bag("eve"))
    whose = hive.HiveObjectRef(objectType=3, dbName="db", objectName="p")
    refreshed = {"objToRefresh": whose, "authorizer": "SQL", "grantRequest": request}
    yield "refresh_privileges", refreshed, f"refresh {table}"


def of_plans(_: ServedMetastore) -> Iterator[Call]:
    pool = in_plan("WMPool", poolPath="a", allocFraction=0.5, queryParallelism=1)
    changed = in_plan("WMNullablePool", queryParallelism=2)
    trigger = in_plan(
        "WMTrigger", triggerName="t", triggerExpression="X > 1", actionExpression="KILL"
    )
    mapping = in_plan("WMMapping", entityType="USER", entityName="ann", poolPath="a", ordering=1)
    join = "WMCreateOrDropTriggerToPoolMappingRequest"
    altered = hive.WMAlterResourcePlanRequest(
        resourcePlanName="w", resourcePlan=hive.WMNullableResourcePlan(queryParallelism=9)
    )
    requests = {
        "create_resource_plan": [
            hive.WMCreateResourcePlanRequest(resourcePlan=hive.WMResourcePlan(name="w"))
        ],
        "alter_resource_plan": [altered],
        "create_wm_pool": [hive.WMCreatePoolRequest(pool=pool)],
        "alter_wm_pool": [hive.WMAlterPoolRequest(pool=changed, poolPath="a")],
        "create_wm_trigger": [hive.WMCreateTriggerRequest(trigger=trigger)],
        "alter_wm_trigger": [hive.WMAlterTriggerRequest(trigger=trigger)],
        "create_or_drop_wm_trigger_to_pool_mapping": [
            in_plan(join, triggerName="t", poolPath="a", drop=is_dropped)
            for is_dropped in (False, True)
        ],
        "create_or_update_wm_mapping": [
            hive.WMCreateOrUpdateMappingRequest(mapping=mapping, update=False)
        ],
        "drop_wm_mapping": [hive.WMDropMappingRequest(mapping=mapping)],
        "drop_wm_trigger": [in_plan("WMDropTriggerRequest", triggerName="t")],
        "drop_wm_pool": [in_plan("WMDropPoolRequest", poolPath="a")],
        "drop_resource_plan": [in_plan("WMDropResourcePlanRequest")],
    }
    for name, asked in requests.items():
        verb = name.partition("_")[0] if name.endswith("_resource_plan") else "edit"
        for request in asked:
            yield name, {"request": request}, f"{verb} w"
    for plan in ("w", "w2"):
        made = hive.WMCreateResourcePlanRequest(resourcePlan=hive.WMResourcePlan(name=plan))
        yield "create_resource_plan", {"request": made}, f"create {plan}"
    replaced = hive.WMAlterResourcePlanRequest(
        resourcePlanName="w2", resourcePlan=hive.WMNullableResourcePlan(name="w"), isReplace=True
    )
    yield "alter_resource_plan", {"request": replaced}, "replace w2"


def of_texts(served: ServedMetastore) -> Iterator[Call]:
    where = {"catName": "hive", "dbName": "db"}
    for kind, verb in ((1, "create"), (2, "alter"), (3, "drop")):
        yield "scheduled_query_maintenance", {"request": maintenance(kind)}, f"{verb} q"
    procedure = hive.StoredProcedure(name="P", ownerName="ann", source=SECRET, **where)
    yield "create_stored_procedure", {"proc": procedure}, "put P"
    dropped = hive.StoredProcedureRequest(procName="P", **where)
    yield "drop_stored_procedure", {"request": dropped}, "drop P"
    package = hive.AddPackageRequest(
        packageName="K", ownerName="ann", header=SECRET, body=SECRET, **where
    )
    yield "add_package", {"request": package}, "put K"
    gone = hive.DropPackageRequest(packageName="K", **where)
    yield "drop_package", {"request": gone}, "drop K"
    token = {"token_identifier": f"id-{SECRET}", "delegation_token": f"token-{SECRET}"}
    yield "add_token", token, "add sha256:"
    yield "remove_token", {"token_identifier": f"id-{SECRET}"}, "remove sha256:"
    yield "add_master_key", {"key": SECRET}, "add "
    (row,) = rows_of(served.database_url, "MASTER_KEYS")
    number = row["KEY_ID"]
    yield "update_master_key", {"seq_number": number, "key": f"{SECRET}2"}, f"update {number}"
    yield "remove_master_key", {"key_seq": number}, f"remove {number}"


FAMILIES = (of_catalogs, of_rights, of_plans, of_texts)


def catalog_rows(served: ServedMetastore) -> dict[str, list[tuple[Any, ...]]]:
    """All rows but those of hooks and their positions."""
    rows = all_rows(served.database_url)
    return {name: those for name, those in rows.items() if name not in _OF_HOOKS}


def heard_of(served: ServedMetastore) -> list[HookEvent]:
    _, told = of(served).hook_positions.following(START, 10_000)
    return list(told)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_what_hives_log_has_no_event_for_is_asked_and_heard_and_has_no_secrets(
    served: ServedMetastore,
    family: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "hms_bridge")
    said: list[str] = []
    for name, arguments, named in family(served):
        wanted = WRITES[name]
        rows, before = catalog_rows(served), len(heard_of(served))
        monkeypatch.setattr(Guard, "is_refusing", True)
        with pytest.raises(MetaError, match=f"pre-event hook {HERE}:Guard refuses") as refused:
            served.call(name, **arguments)
        said.append(str(refused.value))
        monkeypatch.setattr(Guard, "is_refusing", False)
        assert catalog_rows(served) == rows, name
        assert len(heard_of(served)) == before, name
        Guard.asked.clear()
        Inside.told.clear()
        served.call(name, **arguments)
        heard = heard_of(served)[before:]
        kinds = [event.type for event in heard]
        assert set(kinds) <= set(wanted), name
        assert kinds == [event.type for event in Inside.told] == [c.type for c in Guard.asked], name
        (point,) = (event for event in heard if event.point_id)
        (change,) = (one for one in Guard.asked if one.type == point.type)
        assert change.described.startswith(f"{point.type} {named}"), name
        assert dict(change.message) == json.loads(point.message), name
        said += [change.described, repr(change), told_json(point), *map(repr, Inside.told)]
    assert SECRET not in "\n".join(said)
    logged = [record.getMessage() for record in caplog.records if "hook" in record.getMessage()]
    assert SECRET not in "\n".join(logged)


def test_each_method_of_the_table_is_called_here(served: ServedMetastore) -> None:
    called = set()
    for family in FAMILIES:
        for name, arguments, _ in family(served):
            served.call(name, **arguments)
            called.add(name)
    points = {kind.value for kind in PointType if kind.is_change}
    assert called == {name for name, kinds in WRITES.items() if points & set(kinds) and
                      name not in WITH_MORE}  # fmt: skip
    assert {kind for name in called for kind in WRITES[name]} >= points


WITH_MORE = frozenset(name for name in WRITES if name.startswith("create_table"))
"""Those that may grant privileges beside what they are for."""


def test_privileges_that_come_with_a_table_are_asked_and_heard(
    served: ServedMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = (Column(name="a", type="int"),)
    new = table_to_struct(Table(database_name="db", name="n", storage=Storage(columns=columns)))
    info = hive.PrivilegeGrantInfo(privilege="ALL", grantor="ann", grantorType=USER)
    new.privileges = hive.PrincipalPrivilegeSet(
        userPrivileges={"ann": [info]}, groupPrivileges={}, rolePrivileges={}
    )
    Guard.asked.clear()
    served.call("create_table", tbl=new)
    assert [change.described for change in Guard.asked] == [
        "CREATE_TABLE db.n", "CHANGE_PRIVILEGES grant table [db, n]",
    ]  # fmt: skip


def test_what_changes_nothing_is_no_point(served: ServedMetastore) -> None:
    before = len(heard_of(served))
    served.call("drop_role", role_name="none")
    served.call("remove_token", token_identifier="none")
    served.call("remove_master_key", key_seq=1)
    none = hive.HiveObjectRef(objectType=3, dbName="db", objectName="none")
    request = hive.GrantRevokePrivilegeRequest(requestType=1, privileges=bag())
    served.call("refresh_privileges", objToRefresh=none, authorizer="SQL", grantRequest=request)
    served.call("grant_privileges", privileges=hive.PrivilegeBag(privileges=[]))
    assert len(heard_of(served)) == before


def test_every_method_that_writes_is_heard_or_has_a_reason() -> None:
    """Whoever offers a new one writes down which."""
    reading = {name for name in offered_names() if name.startswith(READING)} - REASONS.keys()
    assert not WRITES.keys() & REASONS.keys()
    assert reading | WRITES.keys() | REASONS.keys() == offered_names()
    assert not reading & (WRITES.keys() | REASONS.keys())
    known = {*EventType, *PointType}
    for name, kinds in WRITES.items():
        assert kinds, name
        assert set(kinds) <= known, name
    assert all(REASONS.values())
