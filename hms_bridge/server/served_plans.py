"""What the server asks of a metastore about resource plans; see served_metastore.py."""

from __future__ import annotations

from typing import Protocol

from hms_bridge.model.plan_edits import PlanEdit
from hms_bridge.model.resource_plan import (
    DEFAULT_NAMESPACE,
    PlanChanges,
    PlanKey,
    PlanReport,
    ResourcePlan,
)


class ServedResourcePlans(Protocol):
    """Plans of workload management; of each namespace one at most is active."""

    def create_resource_plan(self, plan: ResourcePlan, copy_from: str | None = None) -> None:
        """Disabled, with one pool, or with everything that another has. Raises AlreadyExistsError,
        InvalidObjectError, NoSuchObjectError."""

    def edit_resource_plan(self, key: PlanKey, edit: PlanEdit) -> None:
        """Make, change or drop a part of a disabled plan. Raises NoSuchObjectError,
        InvalidOperationError, and what the edit raises."""

    def alter_resource_plan(
        self, name: str | None, changes: PlanChanges, namespace: str = DEFAULT_NAMESPACE
    ) -> ResourcePlan | None:
        """Change its values or its status, ``None`` means the active plan; the plan, if it becomes
        active, in place of another. Raises NoSuchObjectError, AlreadyExistsError,
        InvalidOperationError, also for a plan that is not valid."""

    def replace_resource_plan(
        self, name: str, replaced_name: str | None, namespace: str = DEFAULT_NAMESPACE
    ) -> ResourcePlan | None:
        """Put it in place of another, ``None`` means the active one, whose name and status it gets;
        the plan, if it is active then. Raises NoSuchObjectError, InvalidOperationError."""

    def drop_resource_plan(self, key: PlanKey) -> None:
        """With everything in it. Raises NoSuchObjectError, MetaError for the active one."""

    def get_resource_plan(self, key: PlanKey) -> ResourcePlan:
        """One. Raises NoSuchObjectError."""

    def get_resource_plans(self, namespace: str = DEFAULT_NAMESPACE) -> tuple[ResourcePlan, ...]:
        """Those of a namespace, sorted by name."""

    def get_resource_plan_report(self, key: PlanKey) -> PlanReport:
        """What keeps it from being enabled. Raises NoSuchObjectError."""
