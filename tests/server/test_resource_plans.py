"""Resource plans, as HiveServer2 keeps them (docs/hive/metastore.md §39)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidOperationError,
    MetaError,
    MetastoreError,
    NoSuchObjectError,
)
from hms_bridge.wire.structs import Struct, hive
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.stored_rows import rows_of

ACTIVE, ENABLED, DISABLED = 1, 2, 3
TABLES = ("WM_RESOURCEPLAN", "WM_POOL", "WM_TRIGGER", "WM_POOL_TO_TRIGGER", "WM_MAPPING")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    """With plan ``p``."""
    with served_metastore(tmp_path) as served:
        _create(served, "P", queryParallelism=8)
        yield served


def _create(served: ServedMetastore, name: str, copy: str | None = None, **more: Any) -> None:
    plan = hive.WMResourcePlan(name=name, **more)
    request = hive.WMCreateResourcePlanRequest(resourcePlan=plan, copyFrom=copy)
    served.call("create_resource_plan", request=request)


def _get(served: ServedMetastore, name: str = "p") -> Struct:
    request = hive.WMGetResourcePlanRequest(resourcePlanName=name)
    plan: Struct = served.call("get_resource_plan", request=request).resourcePlan
    return plan


def _names(served: ServedMetastore, **of: Any) -> list[tuple[str, int]]:
    request = hive.WMGetAllResourcePlanRequest(**of)
    plans = served.call("get_all_resource_plans", request=request).resourcePlans
    return [(plan.name, plan.status) for plan in plans]


def _alter(served: ServedMetastore, of: str | None, how: dict[str, Any], **changes: Any) -> Any:
    request = hive.WMAlterResourcePlanRequest(
        resourcePlanName=of, resourcePlan=hive.WMNullableResourcePlan(**changes), **how
    )
    return served.call("alter_resource_plan", request=request).fullResourcePlan


def _pool(served: ServedMetastore, path: str, fraction: float, parallelism: int = 1) -> None:
    pool = hive.WMPool(
        resourcePlanName="p", poolPath=path, allocFraction=fraction, queryParallelism=parallelism
    )
    served.call("create_wm_pool", request=hive.WMCreatePoolRequest(pool=pool))


def _alter_pool(served: ServedMetastore, path: str, **changes: Any) -> None:
    pool = hive.WMNullablePool(resourcePlanName="p", **changes)
    served.call("alter_wm_pool", request=hive.WMAlterPoolRequest(pool=pool, poolPath=path))


def _drop_pool(served: ServedMetastore, path: str) -> None:
    request = hive.WMDropPoolRequest(resourcePlanName="p", poolPath=path)
    served.call("drop_wm_pool", request=request)


def _trigger(served: ServedMetastore, call: str = "create_wm_trigger", **more: Any) -> None:
    trigger = hive.WMTrigger(resourcePlanName="p", triggerName="T", **more)
    requests = {
        "create_wm_trigger": hive.WMCreateTriggerRequest,
        "alter_wm_trigger": hive.WMAlterTriggerRequest,
    }
    served.call(call, request=requests[call](trigger=trigger))


def _map(served: ServedMetastore, pool: str | None, is_update: bool = False) -> None:
    mapping = hive.WMMapping(
        resourcePlanName="p", entityType="user", entityName="Ann", poolPath=pool, ordering=1
    )
    request = hive.WMCreateOrUpdateMappingRequest(mapping=mapping, update=is_update)
    served.call("create_or_update_wm_mapping", request=request)


def _join(served: ServedMetastore, path: str, *, drop: bool = False) -> None:
    request = hive.WMCreateOrDropTriggerToPoolMappingRequest(
        resourcePlanName="p", triggerName="t", poolPath=path, drop=drop
    )
    served.call("create_or_drop_wm_trigger_to_pool_mapping", request=request)


def _fill(served: ServedMetastore) -> None:
    """Pools default, a and a.b; trigger t in a.b; ann in a.b."""
    _alter_pool(served, "default", allocFraction=0.5)
    _pool(served, "a", 0.5, 2)
    _pool(served, "A.B", 1.0, 2)
    _trigger(served, triggerExpression="X > 1", actionExpression="KILL")
    _join(served, "a.b")
    _map(served, "a.b")


def test_a_plan_comes_with_a_pool(served: ServedMetastore) -> None:
    of_plan = {"resourcePlanName": "p", "ns": "default"}
    plan = _get(served, "P")
    assert plan.plan == hive.WMResourcePlan(
        name="p", status=DISABLED, queryParallelism=8, defaultPoolPath="default", ns="default"
    )
    assert plan.pools == [
        hive.WMPool(poolPath="default", allocFraction=1.0, queryParallelism=4, **of_plan)
    ]
    assert (plan.mappings, plan.triggers, plan.poolTriggers) == (None, None, None)
    with pytest.raises(AlreadyExistsError, match="Resource plan already exists: p"):
        _create(served, "p")
    _create(served, "p", ns="other")
    assert _names(served, ns="OTHER") == [("p", DISABLED)]
    for name, parallelism in (("", 1), ("n" * 129, 1), ("q", 0)):
        with pytest.raises(MetastoreError):
            _create(served, name, queryParallelism=parallelism)
    with pytest.raises(NoSuchObjectError, match="There is no resource plan named: q in default"):
        _get(served, "q")


def test_parts_are_made_changed_and_dropped(served: ServedMetastore) -> None:
    _fill(served)
    plan = _get(served)
    assert [pool.poolPath for pool in plan.pools] == ["default", "a", "a.b"]
    assert plan.poolTriggers == [hive.WMPoolTrigger(pool="a.b", trigger="t")]
    (mapping,) = plan.mappings
    assert (mapping.entityType, mapping.entityName, mapping.poolPath) == ("USER", "ann", "a.b")
    with pytest.raises(AlreadyExistsError):
        _trigger(served)
    _trigger(served, "alter_wm_trigger", actionExpression="MOVE TO a")
    request = hive.WMGetTriggersForResourePlanRequest(resourcePlanName="p")
    (trigger,) = served.call("get_triggers_for_resourceplan", request=request).triggers
    assert (trigger.triggerExpression, trigger.actionExpression) == ("X > 1", "MOVE TO a")
    _map(served, None, is_update=True)
    assert _get(served).mappings[0].poolPath is None
    with pytest.raises(AlreadyExistsError, match="USER:ann"):
        _map(served, "a")
    _join(served, "a.b", drop=True)
    assert _get(served).poolTriggers is None
    drop = hive.WMDropTriggerRequest(resourcePlanName="p", triggerName="T")
    served.call("drop_wm_trigger", request=drop)
    of_ann = hive.WMMapping(resourcePlanName="p", entityType="USER", entityName="ann")
    unmap = hive.WMDropMappingRequest(mapping=of_ann)
    served.call("drop_wm_mapping", request=unmap)
    for call, again in (("drop_wm_trigger", drop), ("drop_wm_mapping", unmap)):
        with pytest.raises(NoSuchObjectError):
            served.call(call, request=again)
    assert (_get(served).triggers, _get(served).mappings) == (None, None)


def test_pools_form_a_tree(served: ServedMetastore) -> None:
    _fill(served)
    for path, why in (("default", "default pool"), ("a", "child pools"), ("a.b", "mappings")):
        with pytest.raises(InvalidOperationError, match=why):
            _drop_pool(served, path)
    with pytest.raises(NoSuchObjectError, match="the parent does not exist"):
        _pool(served, "x.y", 1.0)
    with pytest.raises(AlreadyExistsError):
        _pool(served, "a", 1.0)
    with pytest.raises(InvalidOperationError, match="cannot become a part of itself"):
        _alter_pool(served, "a", poolPath="a.b.c")
    with pytest.raises(InvalidOperationError, match="Invalid scheduling policy odd"):
        _alter_pool(served, "a", schedulingPolicy="odd", isSetSchedulingPolicy=True)
    _alter_pool(served, "a", poolPath="c", schedulingPolicy="fifo", isSetSchedulingPolicy=True)
    plan = _get(served)
    assert [(pool.poolPath, pool.schedulingPolicy) for pool in plan.pools] == [
        ("default", None), ("c", "fifo"), ("c.b", None)]  # fmt: skip
    assert (plan.mappings[0].poolPath, plan.poolTriggers[0].pool) == ("c.b", "c.b")
    _map(served, "c", is_update=True)
    _drop_pool(served, "c.b")
    assert _get(served).poolTriggers is None


def test_one_plan_is_active_and_only_disabled_ones_are_edited(served: ServedMetastore) -> None:
    _create(served, "q")
    with pytest.raises(InvalidOperationError, match="should be enabled before"):
        _alter(served, "p", {}, status=ACTIVE)
    assert _alter(served, "p", {}, status=ENABLED) is None
    assert _alter(served, "p", {}, status=ACTIVE).plan.name == "p"
    with pytest.raises(InvalidOperationError, match="must be disabled to edit it"):
        _pool(served, "a", 0.1)
    with pytest.raises(InvalidOperationError, match="activate another plan first"):
        _alter(served, "p", {}, status=DISABLED)
    assert _alter(served, "q", {"isEnableAndActivate": True}, status=ACTIVE).plan.status == ACTIVE
    assert _names(served) == [("p", ENABLED), ("q", ACTIVE)]
    request = hive.WMGetActiveResourcePlanRequest()
    active = served.call("get_active_resource_plan", request=request).resourcePlan
    assert active.plan.name == "q"
    drop = hive.WMDropResourcePlanRequest(resourcePlanName="q")
    with pytest.raises(MetaError, match="Cannot drop an active resource plan"):
        served.call("drop_resource_plan", request=drop)
    _alter(served, None, {"isForceDeactivate": True}, status=ENABLED)
    assert _names(served) == [("p", ENABLED), ("q", ENABLED)]
    with pytest.raises(NoSuchObjectError, match="no active resource plan"):
        _alter(served, None, {"isForceDeactivate": True}, status=ENABLED)


def test_a_plan_that_is_not_valid_is_not_enabled(served: ServedMetastore) -> None:
    _pool(served, "a", 0.5, 9)
    request = hive.WMValidateResourcePlanRequest(resourcePlanName="p")
    report = served.call("validate_resource_plan", request=request)
    assert report.errors == [
        "Sum of all pools' query parallelism: 13 exceeds resource plan query parallelism: 8",
        "Sum of root children pools' alloc fraction should be 1.0 got: 1.5 for pool: ",
    ]
    with pytest.raises(InvalidOperationError, match="p is invalid: Sum of all pools"):
        _alter(served, "p", {}, status=ENABLED)
    _alter_pool(served, "a", queryParallelism=1, allocFraction=0.25)
    _alter_pool(served, "default", allocFraction=0.75)
    report = served.call("validate_resource_plan", request=request)
    assert (report.errors, len(report.warnings)) == ([], 1)
    _alter(served, "p", {}, status=ENABLED)


def test_values_of_a_plan_are_changed(served: ServedMetastore) -> None:
    _fill(served)
    _alter(served, "p", {}, name="R", queryParallelism=3, isSetQueryParallelism=True,
           defaultPoolPath="a", isSetDefaultPoolPath=True)  # fmt: skip
    plan = _get(served, "r").plan
    assert (plan.queryParallelism, plan.defaultPoolPath) == (3, "a")
    _alter(served, "r", {}, isSetQueryParallelism=True, isSetDefaultPoolPath=True)
    plan = _get(served, "r").plan
    assert (plan.queryParallelism, plan.defaultPoolPath) == (None, None)
    _create(served, "q")
    for wrong, why in (
        ({"name": "q"}, "should be unique"), ({"name": ""}, "empty"), ({"ns": "x"}, "change ns"),
        ({"name": "s", "status": ENABLED}, "during status switch"),
        ({"queryParallelism": 0, "isSetQueryParallelism": True}, "positive"),
        ({"defaultPoolPath": "none", "isSetDefaultPoolPath": True}, "Cannot find pool"),
    ):  # fmt: skip
        with pytest.raises(MetastoreError, match=why):
            _alter(served, "r", {}, **wrong)
    assert _names(served) == [("q", DISABLED), ("r", DISABLED)]


def test_a_plan_is_copied_put_in_place_of_another_and_dropped(served: ServedMetastore) -> None:
    _fill(served)
    _create(served, "copy", "P")
    whole, copy = _get(served), _get(served, "copy")
    assert [pool.poolPath for pool in copy.pools] == [pool.poolPath for pool in whole.pools]
    assert (copy.poolTriggers, len(copy.mappings)) == (whole.poolTriggers, 1)
    _alter(served, "copy", {"isEnableAndActivate": True}, status=ACTIVE)
    replaced = _alter(served, "p", {"isReplace": True}, status=ACTIVE)
    assert (replaced.plan.name, replaced.plan.status) == ("copy", ACTIVE)
    ((active, _), (old, status)) = _names(served)
    assert (active, old[:9], status) == ("copy", "copy_old_", DISABLED)
    for how in ({"name": "copy", "status": ACTIVE}, {}, {"name": "none"}, {"name": old}):
        with pytest.raises(MetastoreError):
            _alter(served, old, {"isReplace": True}, **how)
    _alter(served, "copy", {"isForceDeactivate": True}, status=DISABLED)
    for name in ("copy", old):
        drop = hive.WMDropResourcePlanRequest(resourcePlanName=name)
        served.call("drop_resource_plan", request=drop)
    assert {table: rows_of(served.database_url, table) for table in TABLES} == dict.fromkeys(
        TABLES, []
    )
