"""Resource plans: HiveServer2 keeps them here, and shares out its daemons by the active one."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.errors import InvalidOperationError
from hms_bridge.model import plan_edits
from hms_bridge.model.resource_plan import PlanStatus, Pool, ResourcePlan
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_plans import ServedResourcePlans
from hms_bridge.wire.convert_plan import (
    changes_from_struct,
    key_of,
    mapping_from_struct,
    mapping_key,
    namespace_of,
    plan_from_struct,
    plan_to_struct,
    pool_from_struct,
    trigger_from_struct,
    triggers_to_structs,
    whole_plan_to_struct,
)
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


class ResourcePlanCalls(Calls[ServedResourcePlans]):
    """Plans as a whole."""

    @answers("create_resource_plan", of="request")
    def create(self, request: Struct) -> Struct:
        plan = plan_from_struct(given(request.resourcePlan, "resourcePlan"))
        source = request.copyFrom.lower() if request.copyFrom else None
        self._store.create_resource_plan(plan, source)
        return hive.WMCreateResourcePlanResponse()

    @answers("get_resource_plan", of="request")
    def get(self, request: Struct) -> Struct:
        plan = self._store.get_resource_plan(key_of(request))
        return hive.WMGetResourcePlanResponse(resourcePlan=whole_plan_to_struct(plan))

    @answers("get_all_resource_plans", of="request")
    def get_all(self, request: Struct) -> Struct:
        plans = self._store.get_resource_plans(namespace_of(request.ns))
        return hive.WMGetAllResourcePlanResponse(resourcePlans=list(map(plan_to_struct, plans)))

    @answers("get_active_resource_plan", of="request")
    def get_active(self, request: Struct) -> Struct:
        """Nothing, if none is active."""
        plans = self._store.get_resource_plans(namespace_of(request.ns))
        active = [plan for plan in plans if plan.status is PlanStatus.ACTIVE]
        shown = whole_plan_to_struct(active[0]) if active else None
        return hive.WMGetActiveResourcePlanResponse(resourcePlan=shown)

    @answers("alter_resource_plan", of="request")
    def alter(self, request: Struct) -> Struct:
        """With the plan, if it is the active one now."""
        struct = given(request.resourcePlan, "resourcePlan")
        name = request.resourcePlanName.lower() if request.resourcePlanName else None
        namespace = namespace_of(request.ns)
        plan = (
            self._replace(name, struct, namespace)
            if request.isReplace
            else self._store.alter_resource_plan(
                name,
                changes_from_struct(
                    struct,
                    may_activate_disabled=bool(request.isEnableAndActivate),
                    may_deactivate=bool(request.isForceDeactivate),
                ),
                namespace,
            )
        )
        shown = None if plan is None else whole_plan_to_struct(plan)
        return hive.WMAlterResourcePlanResponse(fullResourcePlan=shown)

    def _replace(self, name: str | None, struct: Struct, namespace: str) -> ResourcePlan | None:
        if name is None:
            raise InvalidOperationError("Cannot replace without specifying the source plan")
        if struct.queryParallelism is not None or struct.defaultPoolPath is not None:
            raise InvalidOperationError("Cannot change values during replace.")
        is_active = struct.status == PlanStatus.ACTIVE
        if is_active == (struct.name is not None):
            raise InvalidOperationError(
                f"Must specify a name, or the active plan; received {struct.name}, {struct.status}"
            )
        replaced = None if is_active else given_name(struct.name, "name")
        return self._store.replace_resource_plan(name, replaced, namespace)

    @answers("validate_resource_plan", of="request")
    def validate(self, request: Struct) -> Struct:
        report = self._store.get_resource_plan_report(key_of(request))
        return hive.WMValidateResourcePlanResponse(
            errors=list(report.errors), warnings=list(report.warnings)
        )

    @answers("drop_resource_plan", of="request")
    def drop(self, request: Struct) -> Struct:
        self._store.drop_resource_plan(key_of(request))
        return hive.WMDropResourcePlanResponse()


class PlanPartCalls(Calls[ServedResourcePlans]):
    """What is in a plan: pools, triggers, mappings."""

    @answers("create_wm_trigger", of="request")
    def create_trigger(self, request: Struct) -> Struct:
        struct = given(request.trigger, "trigger")
        edit = plan_edits.create_trigger(trigger_from_struct(struct))
        self._store.edit_resource_plan(key_of(struct), edit)
        return hive.WMCreateTriggerResponse()

    @answers("alter_wm_trigger", of="request")
    def alter_trigger(self, request: Struct) -> Struct:
        struct = given(request.trigger, "trigger")
        edit = plan_edits.alter_trigger(
            trigger_from_struct(struct).name,
            struct.triggerExpression,
            struct.actionExpression,
            struct.isInUnmanaged,
        )
        self._store.edit_resource_plan(key_of(struct), edit)
        return hive.WMAlterTriggerResponse()

    @answers("drop_wm_trigger", of="request")
    def drop_trigger(self, request: Struct) -> Struct:
        edit = plan_edits.drop_trigger(given_name(request.triggerName, "triggerName"))
        self._store.edit_resource_plan(key_of(request), edit)
        return hive.WMDropTriggerResponse()

    @answers("get_triggers_for_resourceplan", of="request")
    def triggers(self, request: Struct) -> Struct:
        plan = self._store.get_resource_plan(key_of(request))
        return hive.WMGetTriggersForResourePlanResponse(triggers=triggers_to_structs(plan))

    @answers("create_wm_pool", of="request")
    def create_pool(self, request: Struct) -> Struct:
        struct = given(request.pool, "pool")
        edit = plan_edits.create_pool(pool_from_struct(struct))
        self._store.edit_resource_plan(key_of(struct), edit)
        return hive.WMCreatePoolResponse()

    @answers("alter_wm_pool", of="request")
    def alter_pool(self, request: Struct) -> Struct:
        struct = given(request.pool, "pool")
        path = given_name(request.poolPath, "poolPath")
        edit = plan_edits.alter_pool(path, lambda pool: _changed(pool, struct))
        self._store.edit_resource_plan(key_of(struct), edit)
        return hive.WMAlterPoolResponse()

    @answers("drop_wm_pool", of="request")
    def drop_pool(self, request: Struct) -> Struct:
        edit = plan_edits.drop_pool(given_name(request.poolPath, "poolPath"))
        self._store.edit_resource_plan(key_of(request), edit)
        return hive.WMDropPoolResponse()

    @answers("create_or_update_wm_mapping", of="request")
    def put_mapping(self, request: Struct) -> Struct:
        struct = given(request.mapping, "mapping")
        mapping = mapping_from_struct(struct)
        edit = plan_edits.put_mapping(mapping, is_update=bool(request.update))
        self._store.edit_resource_plan(key_of(struct), edit)
        return hive.WMCreateOrUpdateMappingResponse()

    @answers("drop_wm_mapping", of="request")
    def drop_mapping(self, request: Struct) -> Struct:
        struct = given(request.mapping, "mapping")
        edit = plan_edits.drop_mapping(mapping_key(struct))
        self._store.edit_resource_plan(key_of(struct), edit)
        return hive.WMDropMappingResponse()

    @answers("create_or_drop_wm_trigger_to_pool_mapping", of="request")
    def put_trigger_in_pool(self, request: Struct) -> Struct:
        edit = plan_edits.put_trigger_in_pool(
            given_name(request.triggerName, "triggerName"),
            given_name(request.poolPath, "poolPath"),
            is_dropped=bool(request.drop),
        )
        self._store.edit_resource_plan(key_of(request), edit)
        return hive.WMCreateOrDropTriggerToPoolMappingResponse()


def _changed(pool: Pool, struct: Struct) -> Pool:
    policy = struct.schedulingPolicy if struct.isSetSchedulingPolicy else pool.policy
    parallelism = struct.queryParallelism
    return replace(
        pool,
        path=struct.poolPath.lower() if struct.poolPath else pool.path,
        fraction=pool.fraction if struct.allocFraction is None else struct.allocFraction,
        query_parallelism=pool.query_parallelism if parallelism is None else parallelism,
        policy=policy,
    )
