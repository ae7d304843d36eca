"""Resource plans: thrift structs to records and back. Names are in lower case."""

from __future__ import annotations

from hms_bridge.errors import MetaError
from hms_bridge.model.resource_plan import (
    DEFAULT_NAMESPACE,
    Mapping,
    PlanChanges,
    PlanKey,
    PlanStatus,
    Pool,
    ResourcePlan,
    Trigger,
)
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


def namespace_of(text: str | None) -> str:
    """That of old clients, which name none, is ``default``."""
    return DEFAULT_NAMESPACE if text is None else text.lower()


def key_of(struct: Struct) -> PlanKey:
    """The plan that a request or a part of a plan is about. Raises MetaError without a name."""
    name = given_name(struct.resourcePlanName, "resourcePlanName")
    return PlanKey(name, namespace_of(struct.ns))


def plan_from_struct(struct: Struct) -> ResourcePlan:
    """A new plan. Raises MetaError without a name."""
    key = PlanKey(given_name(struct.name, "name"), namespace_of(struct.ns))
    return ResourcePlan(key=key, query_parallelism=struct.queryParallelism)


def changes_from_struct(
    struct: Struct, *, may_activate_disabled: bool, may_deactivate: bool
) -> PlanChanges:
    """Raises MetaError for an unknown status."""
    return PlanChanges(
        name=_lowered(struct.name),
        namespace=_lowered(struct.ns),
        status=None if struct.status is None else _status(struct.status),
        query_parallelism=struct.queryParallelism,
        has_query_parallelism=bool(struct.isSetQueryParallelism),
        default_pool=_lowered(struct.defaultPoolPath),
        has_default_pool=bool(struct.isSetDefaultPoolPath),
        may_activate_disabled=may_activate_disabled,
        may_deactivate=may_deactivate,
    )


def pool_from_struct(struct: Struct) -> Pool:
    """Raises MetaError if something is missing."""
    return Pool(
        path=given_name(struct.poolPath, "poolPath"),
        fraction=given(struct.allocFraction, "allocFraction"),
        query_parallelism=given(struct.queryParallelism, "queryParallelism"),
        policy=struct.schedulingPolicy,
    )


def trigger_from_struct(struct: Struct) -> Trigger:
    """Raises MetaError without a name."""
    return Trigger(
        name=given_name(struct.triggerName, "triggerName"),
        expression=struct.triggerExpression,
        action=struct.actionExpression,
        is_in_unmanaged=bool(struct.isInUnmanaged),
    )


def mapping_from_struct(struct: Struct) -> Mapping:
    """Raises MetaError if something is missing."""
    entity_type, entity_name = mapping_key(struct)
    return Mapping(
        entity_type=entity_type,
        entity_name=entity_name,
        pool=_lowered(struct.poolPath),
        ordering=struct.ordering,
    )


def mapping_key(struct: Struct) -> tuple[str, str]:
    """Whose mapping it is. Raises MetaError if something is missing."""
    entity_type = given_name(struct.entityType, "entityType").strip().upper()
    return entity_type, given_name(struct.entityName, "entityName")


def plan_to_struct(plan: ResourcePlan) -> Struct:
    """WMResourcePlan: without what is in it."""
    return hive.WMResourcePlan(
        name=plan.key.name,
        status=int(plan.status),
        queryParallelism=plan.query_parallelism,
        defaultPoolPath=plan.default_pool,
        ns=plan.key.namespace,
    )


def whole_plan_to_struct(plan: ResourcePlan) -> Struct:
    """WMFullResourcePlan; as Hive's, without lists that are empty."""
    of_plan = {"resourcePlanName": plan.key.name, "ns": plan.key.namespace}
    pools = [
        hive.WMPool(
            poolPath=pool.path,
            allocFraction=pool.fraction,
            queryParallelism=pool.query_parallelism,
            schedulingPolicy=pool.policy,
            **of_plan,
        )
        for pool in plan.pools
    ]
    mappings = [
        hive.WMMapping(
            entityType=mapping.entity_type,
            entityName=mapping.entity_name,
            poolPath=mapping.pool,
            ordering=mapping.ordering,
            **of_plan,
        )
        for mapping in plan.mappings
    ]
    pairs = [hive.WMPoolTrigger(pool=path, trigger=name) for path, name in plan.pool_triggers]
    return hive.WMFullResourcePlan(
        plan=plan_to_struct(plan),
        pools=pools,
        mappings=mappings or None,
        triggers=triggers_to_structs(plan) or None,
        poolTriggers=pairs or None,
    )


def triggers_to_structs(plan: ResourcePlan) -> list[Struct]:
    """WMTrigger structs."""
    return [
        hive.WMTrigger(
            resourcePlanName=plan.key.name,
            triggerName=trigger.name,
            triggerExpression=trigger.expression,
            actionExpression=trigger.action,
            isInUnmanaged=trigger.is_in_unmanaged,
            ns=plan.key.namespace,
        )
        for trigger in plan.triggers
    ]


def _status(number: int) -> PlanStatus:
    try:
        return PlanStatus(number)
    except ValueError as error:
        raise MetaError(f"{number} is no status of a resource plan") from error


def _lowered(text: str | None) -> str | None:
    return None if text is None else text.lower()
