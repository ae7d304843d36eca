"""Calls about resource plans: their pools, triggers and mappings."""

from __future__ import annotations

from typing import Any

from hms_bridge.wire.structs import Struct, hive
from integration.recorded.objects import Asked

NS = "n"
_ACTIVE, _ENABLED, _DISABLED = 1, 2, 3


def _get(ask: Asked, plan: str = "rp") -> None:
    request = hive.WMGetResourcePlanRequest(resourcePlanName=plan, ns=NS)
    ask("get_resource_plan", request=request)


def plans(ask: Asked) -> None:
    for name in ("rp", "other"):
        ask("create_resource_plan", request=hive.WMCreateResourcePlanRequest(
            resourcePlan=hive.WMResourcePlan(name=name, queryParallelism=4, ns=NS)
        ))  # fmt: skip
    _get(ask)
    _alter_plan(ask, queryParallelism=3, isSetQueryParallelism=True)
    _alter_plan(ask, "nope", queryParallelism=3, isSetQueryParallelism=True)
    _alter_plan(ask, "other", name="renamed")
    _alter_plan(ask, "renamed", name="rp")
    _validate(ask)
    _validate(ask, "nope")


def _alter_plan(ask: Asked, plan: str = "rp", flags: Any = None, **fields: Any) -> None:
    ask("alter_resource_plan", request=hive.WMAlterResourcePlanRequest(
        resourcePlanName=plan, resourcePlan=hive.WMNullableResourcePlan(ns=NS, **fields), ns=NS,
        **(flags or {}),
    ))  # fmt: skip


def _validate(ask: Asked, plan: str = "rp") -> None:
    request = hive.WMValidateResourcePlanRequest(resourcePlanName=plan, ns=NS)
    ask("validate_resource_plan", request=request)


def pools(ask: Asked) -> None:
    def create(path: str, plan: str = "rp", **fields: Any) -> None:
        pool = hive.WMPool(**{
            "resourcePlanName": plan, "poolPath": path, "allocFraction": 0.5,
            "queryParallelism": 2, "ns": NS, **fields,
        })  # fmt: skip
        ask("create_wm_pool", request=hive.WMCreatePoolRequest(pool=pool))

    def alter(path: str, plan: str = "rp", **fields: Any) -> None:
        pool = hive.WMNullablePool(
            **{"resourcePlanName": plan, "poolPath": path, "ns": NS, **fields}
        )
        ask("alter_wm_pool", request=hive.WMAlterPoolRequest(pool=pool, poolPath=path))

    def drop(path: str, plan: str = "rp") -> None:
        request = hive.WMDropPoolRequest(resourcePlanName=plan, poolPath=path, ns=NS)
        ask("drop_wm_pool", request=request)

    create("etl")
    create("etl")
    create("etl.sub", schedulingPolicy="fair")
    create("none.sub")
    create("p", "nope")
    create("odd", schedulingPolicy="odd")
    alter("etl", queryParallelism=1)
    alter("etl", poolPath="batch")
    alter("etl", queryParallelism=1)
    alter("batch", "nope", queryParallelism=1)
    alter("batch.sub", isSetSchedulingPolicy=True)
    _get(ask)
    _validate(ask)
    drop("default")
    drop("nope")
    drop("batch", "nope")
    create("short")
    drop("short")


def triggers(ask: Asked) -> None:
    def trigger(name: str, plan: str = "rp", **fields: Any) -> Struct:
        return hive.WMTrigger(**{
            "resourcePlanName": plan, "triggerName": name,
            "triggerExpression": "BYTES_READ > '1GB'", "actionExpression": "KILL", "ns": NS,
            **fields,
        })  # fmt: skip

    def create(*arguments: str, **fields: Any) -> None:
        request = hive.WMCreateTriggerRequest(trigger=trigger(*arguments, **fields))
        ask("create_wm_trigger", request=request)

    def alter(*arguments: str, **fields: Any) -> None:
        request = hive.WMAlterTriggerRequest(trigger=trigger(*arguments, **fields))
        ask("alter_wm_trigger", request=request)

    def drop(name: str, plan: str = "rp") -> None:
        request = hive.WMDropTriggerRequest(resourcePlanName=plan, triggerName=name, ns=NS)
        ask("drop_wm_trigger", request=request)

    def joined(name: str, pool: str, drop: bool = False, plan: str = "rp") -> None:
        ask(
            "create_or_drop_wm_trigger_to_pool_mapping",
            request=hive.WMCreateOrDropTriggerToPoolMappingRequest(
                resourcePlanName=plan, triggerName=name, poolPath=pool, drop=drop, ns=NS
            ),
        )

    def listed(plan: str = "rp") -> None:
        request = hive.WMGetTriggersForResourePlanRequest(resourcePlanName=plan, ns=NS)
        ask("get_triggers_for_resourceplan", request=request)

    create("big")
    create("big")
    create("free", isInUnmanaged=True)
    create("t", "nope")
    alter("big", actionExpression="MOVE TO batch")
    alter("nope")
    alter("big", "nope")
    listed()
    listed("nope")
    joined("big", "batch")
    joined("big", "batch")
    joined("nope", "batch")
    joined("big", "nope")
    joined("big", "batch", plan="nope")
    _get(ask)
    joined("big", "batch", drop=True)
    joined("big", "batch", drop=True)
    drop("nope")
    drop("big", "nope")
    drop("big")
    listed()


def mappings(ask: Asked) -> None:
    def mapping(name: str, pool: str | None = "batch", **fields: Any) -> Struct:
        return hive.WMMapping(**{
            "resourcePlanName": "rp", "entityType": "USER", "entityName": name, "poolPath": pool,
            "ordering": 1, "ns": NS, **fields,
        })  # fmt: skip

    def make(given: Struct, *, update: bool = False) -> None:
        request = hive.WMCreateOrUpdateMappingRequest(mapping=given, update=update)
        ask("create_or_update_wm_mapping", request=request)

    def drop(given: Struct) -> None:
        ask("drop_wm_mapping", request=hive.WMDropMappingRequest(mapping=given))

    make(mapping("ann"))
    make(mapping("ann"))
    make(mapping("ann", "batch.sub", ordering=2), update=True)
    make(mapping("bob"), update=True)
    make(mapping("cid", None, entityType="GROUP"))
    make(mapping("dan", "nope"))
    make(mapping("dan", resourcePlanName="nope"))
    make(mapping("dan", entityType="ODD"))
    _get(ask)
    drop(mapping("ann"))
    drop(mapping("ann"))
    drop(mapping("ann", resourcePlanName="nope"))
    _validate(ask)


def activation(ask: Asked) -> None:
    def active() -> None:
        ask("get_active_resource_plan", request=hive.WMGetActiveResourcePlanRequest(ns=NS))

    _alter_plan(ask, status=_ENABLED)
    _alter_plan(ask, "renamed", status=_ACTIVE)
    _alter_plan(ask, "renamed", status=_ENABLED)
    _alter_plan(ask, "renamed", status=_ACTIVE)
    active()
    _alter_plan(ask, "renamed", queryParallelism=9, isSetQueryParallelism=True)
    ask("create_wm_pool", request=hive.WMCreatePoolRequest(pool=hive.WMPool(
        resourcePlanName="renamed", poolPath="late", allocFraction=0.0, queryParallelism=1, ns=NS
    )))  # fmt: skip
    _alter_plan(ask, "renamed", status=_DISABLED)
    _alter_plan(ask, "renamed", {"isForceDeactivate": True}, status=_ENABLED)
    active()
    _alter_plan(ask, "renamed", status=_DISABLED)
    _alter_plan(ask, "renamed", {"isEnableAndActivate": True}, status=_ACTIVE)
    active()
    _alter_plan(ask, "renamed", status=_DISABLED)
    _alter_plan(ask, "rp", {"isReplace": True}, name="renamed")
    _get(ask)
    _get(ask, "renamed")
