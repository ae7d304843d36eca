"""Verbs of resource plans (Hive: ObjectStore.createResourcePlan, alterResourcePlan and their kin;
docs/hive/metastore.md §39)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import resource_plans
from hms_bridge.catalog.limits import check_plan
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.hooks.changes import plan_changed
from hms_bridge.model.plan_edits import PlanEdit, report_of, require_pool
from hms_bridge.model.resource_plan import (
    DEFAULT_NAMESPACE,
    PlanChanges,
    PlanKey,
    PlanReport,
    PlanStatus,
    Pool,
    ResourcePlan,
)
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads_whole, writes

_FIRST_POOL = Pool(path="default", fraction=1.0, query_parallelism=4)
"""Of a new plan (metastore.wm.default.pool.size)."""

Plans = dict[int, ResourcePlan]


def _create(unit: UnitOfWork, plan: ResourcePlan, copy_from: str | None = None) -> None:
    if plan.query_parallelism is not None and plan.query_parallelism <= 0:
        raise InvalidObjectError("Query parallelism should be positive.")
    plans = _held(unit, plan.key.namespace)
    if _find(plans, plan.key) is not None:
        raise AlreadyExistsError(f"Resource plan already exists: {plan.key.name}")
    new = replace(plan, pools=(_FIRST_POOL,), default_pool=_FIRST_POOL.path)
    if copy_from is not None:
        _, copied = _require(plans, PlanKey(copy_from, plan.key.namespace))
        new = replace(copied, key=plan.key, status=PlanStatus.DISABLED)
    check_plan(new)
    resource_plans.insert_plan(unit.connection, new)
    unit.points.append(plan_changed("create", new.key, new))


def _edit(unit: UnitOfWork, key: PlanKey, edit: PlanEdit) -> None:
    number, plan = _require(_held(unit, key.namespace), key)
    _require_disabled(plan)
    edited = edit(plan)
    _save(unit, number, edited)
    unit.points.append(plan_changed("edit", key, edited))


def _alter(
    unit: UnitOfWork, name: str | None, changes: PlanChanges, namespace: str = DEFAULT_NAMESPACE
) -> ResourcePlan | None:
    plans = _held(unit, namespace)
    number, plan = _active(plans) if name is None else _require(plans, PlanKey(name, namespace))
    if changes.namespace not in (None, plan.key.namespace):
        raise InvalidOperationError(
            f"Cannot change ns; from {plan.key.namespace} to {changes.namespace}"
        )
    is_renamed = changes.name not in (None, plan.key.name)
    is_changed = is_renamed or changes.has_query_parallelism or changes.has_default_pool
    if is_changed and changes.status is not None:
        raise InvalidOperationError("Cannot change values during status switch.")
    if is_changed:
        _require_disabled(plan)
    if is_renamed and _find(plans, PlanKey(changes.name or "", namespace)) is not None:
        raise AlreadyExistsError(f"Resource plan name should be unique: {changes.name}")
    key, plan = plan.key, _with_values(plan, changes)
    is_switched = changes.status not in (None, plan.status)
    if is_switched:
        plan = _switched(unit, plans, plan, changes)
    _save(unit, number, plan)
    unit.points.append(plan_changed("alter", key, plan))
    return plan if is_switched and plan.status is PlanStatus.ACTIVE else None


def _with_values(plan: ResourcePlan, changes: PlanChanges) -> ResourcePlan:
    if changes.name == "":
        raise InvalidOperationError("Cannot rename to empty value.")
    if changes.name is not None:
        plan = replace(plan, key=PlanKey(changes.name, plan.key.namespace))
    if changes.has_query_parallelism:
        if changes.query_parallelism is not None and changes.query_parallelism <= 0:
            raise InvalidOperationError("queryParallelism should be positive.")
        plan = replace(plan, query_parallelism=changes.query_parallelism)
    if changes.has_default_pool:
        if changes.default_pool is not None:
            require_pool(plan, changes.default_pool)
        plan = replace(plan, default_pool=changes.default_pool)
    return plan


def _switched(
    unit: UnitOfWork, plans: Plans, plan: ResourcePlan, changes: PlanChanges
) -> ResourcePlan:
    """The plan with its new status; of the plan that was active another one takes the place."""
    wanted = changes.status or plan.status
    if plan.status is PlanStatus.ACTIVE and not changes.may_deactivate:
        raise InvalidOperationError(
            f"Resource plan {plan.key.name} is active; activate another plan first, or disable "
            "workload management."
        )
    if plan.status is PlanStatus.DISABLED:
        if wanted is PlanStatus.ACTIVE and not changes.may_activate_disabled:
            raise InvalidOperationError(
                f"Resource plan {plan.key.name} is disabled and should be enabled before "
                "activation (or in the same command)"
            )
        errors = report_of(plan).errors
        if errors:
            raise InvalidOperationError(
                f"ResourcePlan: {plan.key.name} is invalid: {'; '.join(errors)}"
            )
    if wanted is PlanStatus.ACTIVE:
        for other, active in plans.items():
            if active.status is PlanStatus.ACTIVE:
                _save(unit, other, replace(active, status=PlanStatus.ENABLED))
    return replace(plan, status=wanted)


def _replace(
    unit: UnitOfWork, name: str, replaced_name: str | None, namespace: str = DEFAULT_NAMESPACE
) -> ResourcePlan | None:
    """It gets the name and the status of another, which is kept, disabled, under a name that says
    when that was; None: of the active one."""
    plans = _held(unit, namespace)
    number, plan = _require(plans, PlanKey(name, namespace))
    old_number, old = (
        _active(plans) if replaced_name is None else _require(plans, PlanKey(replaced_name,
                                                                            namespace))
    )  # fmt: skip
    if old_number == number:
        raise InvalidOperationError("A plan cannot replace itself")
    at = datetime.fromtimestamp(unit.now_seconds, UTC).strftime("%Y_%m_%d_%H_%M_%S")
    names = (f"{old.key.name}_old_{at}{f'_{n}' if n else ''}" for n in count())
    free = next(PlanKey(n, namespace) for n in names if _find(plans, PlanKey(n, namespace)) is None)
    _save(unit, old_number, replace(old, key=free, status=PlanStatus.DISABLED))
    new = replace(plan, key=old.key, status=old.status)
    _save(unit, number, new)
    unit.points.append(plan_changed("replace", plan.key, new))
    return new if new.status is PlanStatus.ACTIVE else None


def _drop(unit: UnitOfWork, key: PlanKey) -> None:
    number, plan = _require(_held(unit, key.namespace), key)
    if plan.status is PlanStatus.ACTIVE:
        raise MetaError("Cannot drop an active resource plan")
    resource_plans.delete_plan(unit.connection, number)
    unit.points.append(plan_changed("drop", key, plan))


def _get(connection: Connection, key: PlanKey) -> ResourcePlan:
    return _require(resource_plans.plans_of(connection, key.namespace), key)[1]


def _get_all(
    connection: Connection, namespace: str = DEFAULT_NAMESPACE
) -> tuple[ResourcePlan, ...]:
    return tuple(resource_plans.plans_of(connection, namespace).values())


def _report(connection: Connection, key: PlanKey) -> PlanReport:
    return report_of(_get(connection, key))


def _held(unit: UnitOfWork, namespace: str) -> Plans:
    return resource_plans.plans_of(unit.connection, namespace, RowLock.EXCLUSIVE)


def _save(unit: UnitOfWork, number: int, plan: ResourcePlan) -> None:
    check_plan(plan)
    resource_plans.update_plan(unit.connection, number, plan)


def _find(plans: Plans, key: PlanKey) -> tuple[int, ResourcePlan] | None:
    return next(((number, plan) for number, plan in plans.items() if plan.key == key), None)


def _require(plans: Plans, key: PlanKey) -> tuple[int, ResourcePlan]:
    stored = _find(plans, key)
    if stored is None:
        raise NoSuchObjectError(f"There is no resource plan named: {key}")
    return stored


def _active(plans: Plans) -> tuple[int, ResourcePlan]:
    active = (pair for pair in plans.items() if pair[1].status is PlanStatus.ACTIVE)
    stored = next(active, None)
    if stored is None:
        raise NoSuchObjectError("there is no active resource plan")
    return stored


def _require_disabled(plan: ResourcePlan) -> None:
    if plan.status is not PlanStatus.DISABLED:
        raise InvalidOperationError("Resource plan must be disabled to edit it.")


class ResourcePlanVerbs(VerbFamily):
    """The ServedResourcePlans."""

    create_resource_plan = writes(_create)
    edit_resource_plan = writes(_edit)
    alter_resource_plan = writes(_alter)
    replace_resource_plan = writes(_replace)
    drop_resource_plan = writes(_drop)
    get_resource_plan = reads_whole(sql(_get))
    get_resource_plans = reads_whole(sql(_get_all))
    get_resource_plan_report = reads_whole(sql(_report))
