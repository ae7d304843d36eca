"""What becomes of a resource plan when a part of it is made, changed or dropped. Pure.

Hive: ObjectStore.createPool, alterPool, createWMTrigger and their kin, getResourcePlanErrors
(docs/hive/metastore.md §39).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from hms_bridge.errors import AlreadyExistsError, InvalidOperationError, NoSuchObjectError
from hms_bridge.model.resource_plan import Mapping, PlanReport, Pool, ResourcePlan, Trigger

PlanEdit = Callable[[ResourcePlan], ResourcePlan]
"""Gives the plan as it is afterwards, or raises what it refuses."""

_ENTITY_TYPES = ("USER", "GROUP", "APPLICATION")
_POLICIES = ("DEFAULT", "FAIR", "FIFO")
_TOLERANCE = 0.00001


def create_trigger(trigger: Trigger) -> PlanEdit:
    """Raises AlreadyExistsError."""

    def edit(plan: ResourcePlan) -> ResourcePlan:
        if any(there.name == trigger.name for there in plan.triggers):
            raise AlreadyExistsError(f"Trigger already exists, use alter: {trigger.name}")
        return replace(plan, triggers=(*plan.triggers, trigger))

    return edit


def alter_trigger(
    name: str, expression: str | None, action: str | None, is_in_unmanaged: bool | None
) -> PlanEdit:
    """Replace what is given. Raises NoSuchObjectError."""

    def edit(plan: ResourcePlan) -> ResourcePlan:
        old = require_trigger(plan, name)
        new = replace(
            old,
            expression=old.expression if expression is None else expression,
            action=old.action if action is None else action,
            is_in_unmanaged=old.is_in_unmanaged if is_in_unmanaged is None else is_in_unmanaged,
        )
        triggers = tuple(new if there is old else there for there in plan.triggers)
        return replace(plan, triggers=triggers)

    return edit


def drop_trigger(name: str) -> PlanEdit:
    """Out of all pools, too. Raises NoSuchObjectError."""

    def edit(plan: ResourcePlan) -> ResourcePlan:
        require_trigger(plan, name)
        return replace(
            plan,
            triggers=tuple(there for there in plan.triggers if there.name != name),
            pool_triggers=tuple(pair for pair in plan.pool_triggers if pair[1] != name),
        )

    return edit


def create_pool(pool: Pool) -> PlanEdit:
    """Raises AlreadyExistsError, NoSuchObjectError without the pool that it is a part of,
    InvalidOperationError."""

    def edit(plan: ResourcePlan) -> ResourcePlan:
        _require_parent(plan, pool)
        require_policy(pool.policy)
        if any(there.path == pool.path for there in plan.pools):
            raise AlreadyExistsError(f"Pool already exists: {pool.path}")
        return replace(plan, pools=(*plan.pools, pool))

    return edit


def alter_pool(path: str, change: Callable[[Pool], Pool]) -> PlanEdit:
    """Parts of a pool, and what refers to it, follow its new path. Raises NoSuchObjectError,
    AlreadyExistsError, InvalidOperationError."""

    def edit(plan: ResourcePlan) -> ResourcePlan:
        old = require_pool(plan, path)
        new = change(old)
        require_policy(new.policy)
        if new.path != old.path:
            _require_parent(plan, new)
            if new.path.startswith(f"{old.path}."):
                raise InvalidOperationError(f"pool {old.path} cannot become a part of itself")
        changed = replace(plan, pools=tuple(new if p is old else p for p in plan.pools))
        return _moved(changed, old.path, new.path)

    return edit


def drop_pool(path: str) -> PlanEdit:
    """Raises NoSuchObjectError, InvalidOperationError for the default pool, and for one that has
    parts or mappings."""

    def edit(plan: ResourcePlan) -> ResourcePlan:
        if plan.default_pool == path:
            raise InvalidOperationError("Cannot drop default pool of a resource plan")
        if any(there.path.startswith(f"{path}.") for there in plan.pools):
            raise InvalidOperationError("Cannot drop a pool that has child pools")
        require_pool(plan, path)
        if any(mapping.pool == path for mapping in plan.mappings):
            raise InvalidOperationError("Please remove all mappings for this pool.")
        return replace(
            plan,
            pools=tuple(there for there in plan.pools if there.path != path),
            pool_triggers=tuple(pair for pair in plan.pool_triggers if pair[0] != path),
        )

    return edit


def put_mapping(mapping: Mapping, *, is_update: bool) -> PlanEdit:
    """Make one, or give one another pool. Raises AlreadyExistsError, NoSuchObjectError,
    InvalidOperationError for an unknown kind."""

    def edit(plan: ResourcePlan) -> ResourcePlan:
        if mapping.entity_type not in _ENTITY_TYPES:
            raise InvalidOperationError(
                f"{mapping.entity_type} cannot be mapped; send one of {', '.join(_ENTITY_TYPES)}"
            )
        if mapping.pool is not None:
            require_pool(plan, mapping.pool)
        old = next((there for there in plan.mappings if there.key == mapping.key), None)
        if not is_update:
            if old is not None:
                raise AlreadyExistsError(f"Mapping already exists: {':'.join(mapping.key)}")
            return replace(plan, mappings=(*plan.mappings, mapping))
        if old is None:
            raise NoSuchObjectError(f"Cannot find mapping for {':'.join(mapping.key)}")
        new = replace(old, pool=mapping.pool)
        return replace(plan, mappings=tuple(new if m is old else m for m in plan.mappings))

    return edit


def drop_mapping(key: tuple[str, str]) -> PlanEdit:
    """Raises NoSuchObjectError."""

    def edit(plan: ResourcePlan) -> ResourcePlan:
        left = tuple(mapping for mapping in plan.mappings if mapping.key != key)
        if len(left) == len(plan.mappings):
            raise NoSuchObjectError(f"Cannot delete mapping: {':'.join(key)}")
        return replace(plan, mappings=left)

    return edit


def put_trigger_in_pool(trigger: str, path: str, *, is_dropped: bool) -> PlanEdit:
    """Or take it out; what is so already stays so. Raises NoSuchObjectError."""

    def edit(plan: ResourcePlan) -> ResourcePlan:
        require_pool(plan, path)
        require_trigger(plan, trigger)
        pair = (path, trigger)
        others = tuple(there for there in plan.pool_triggers if there != pair)
        return replace(plan, pool_triggers=others if is_dropped else (*others, pair))

    return edit


def require_pool(plan: ResourcePlan, path: str) -> Pool:
    """One by its path. Raises NoSuchObjectError."""
    pool = next((there for there in plan.pools if there.path == path), None)
    if pool is None:
        raise NoSuchObjectError(f"Cannot find pool: {path}")
    return pool


def require_trigger(plan: ResourcePlan, name: str) -> Trigger:
    """One by its name. Raises NoSuchObjectError."""
    trigger = next((there for there in plan.triggers if there.name == name), None)
    if trigger is None:
        raise NoSuchObjectError(f"Cannot find trigger with name: {name}")
    return trigger


def require_policy(policy: str | None) -> None:
    """Raises InvalidOperationError for one that Hive does not know."""
    if policy is not None and policy.strip().upper() not in _POLICIES:
        raise InvalidOperationError(f"Invalid scheduling policy {policy}")


def report_of(plan: ResourcePlan) -> PlanReport:
    """Whether it can be enabled."""
    errors: list[str] = []
    warnings: list[str] = []
    shares: dict[str, float] = defaultdict(float)
    for pool in plan.pools:
        shares[pool.parent] += pool.fraction
        if pool.query_parallelism < 1:
            errors.append(f"Invalid query parallelism for pool: {pool.path}")
    total = sum(pool.query_parallelism for pool in plan.pools if pool.query_parallelism > 0)
    limit = plan.query_parallelism
    if limit is not None and total > limit:
        errors.append(f"Sum of all pools' query parallelism: {total} exceeds resource plan query "
                      f"parallelism: {limit}")  # fmt: skip
    elif limit is not None and total < limit:
        warnings.append(f"Sum of all pools' query parallelism: {total} is less than resource plan "
                        f"query parallelism: {limit}")  # fmt: skip
    if not plan.pools:
        errors.append("Root has no children")
    paths = {"", *(pool.path for pool in plan.pools)}
    for path, share in shares.items():
        if path not in paths:
            errors.append(f"Pool does not exists but has children: {path}")
        if not path and abs(1.0 - share) > _TOLERANCE:
            errors.append(f"Sum of root children pools' alloc fraction should be 1.0 got: "
                          f"{share} for pool: ")  # fmt: skip
        if path and share - 1.0 > _TOLERANCE:
            errors.append(f"Sum of children pools' alloc fraction should be less than 1 got: "
                          f"{share} for pool: {path}")  # fmt: skip
    return PlanReport(errors=tuple(errors), warnings=tuple(warnings))


def _require_parent(plan: ResourcePlan, pool: Pool) -> None:
    if pool.parent and all(there.path != pool.parent for there in plan.pools):
        raise NoSuchObjectError("Pool path is invalid, the parent does not exist")


def _moved(plan: ResourcePlan, old: str, new: str) -> ResourcePlan:
    """With everything that named a pool by its old path. Raises AlreadyExistsError."""
    if old == new:
        return plan

    def path_of(path: str) -> str:
        is_within = path == old or path.startswith(f"{old}.")
        return f"{new}{path[len(old) :]}" if is_within else path

    pools = tuple(replace(pool, path=path_of(pool.path)) for pool in plan.pools)
    if len({pool.path for pool in pools}) < len(pools):
        raise AlreadyExistsError(f"Pool already exists: {new}")
    return replace(
        plan,
        pools=pools,
        default_pool=None if plan.default_pool is None else path_of(plan.default_pool),
        mappings=tuple(
            replace(mapping, pool=None if mapping.pool is None else path_of(mapping.pool))
            for mapping in plan.mappings
        ),
        pool_triggers=tuple((path_of(path), name) for path, name in plan.pool_triggers),
    )
