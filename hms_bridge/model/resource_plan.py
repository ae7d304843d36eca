"""Resource plans of workload management: how HiveServer2 shares out its daemons."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

DEFAULT_NAMESPACE = "default"
"""Where a plan is whose client names no namespace."""


class PlanStatus(IntEnum):
    """The number stands on the wire, the name in the database. One plan of a namespace is active;
    only a disabled one is edited."""

    ACTIVE = 1
    ENABLED = 2
    DISABLED = 3


@dataclass(frozen=True, slots=True)
class PlanKey:
    """Which plan; both names are in lower case."""

    name: str
    namespace: str = DEFAULT_NAMESPACE

    def __str__(self) -> str:
        """As Hive names it."""
        return f"{self.name} in {self.namespace}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """A share of the daemons; ``a.b`` is a part of ``a``."""

    path: str
    fraction: float
    query_parallelism: int
    policy: str | None = None

    @property
    def parent(self) -> str:
        """The path of that which it is a part of; empty for none."""
        return self.path.rpartition(".")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trigger:
    """What is done with a query that uses too much."""

    name: str
    expression: str | None = None
    action: str | None = None
    is_in_unmanaged: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Mapping:
    """Who runs queries in which pool; None: in none that is managed."""

    entity_type: str
    entity_name: str
    pool: str | None = None
    ordering: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Whose mapping it is."""
        return self.entity_type, self.entity_name


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourcePlan:
    """A plan with everything in it; ``pool_triggers`` are paths of pools and names of triggers."""

    key: PlanKey
    status: PlanStatus = PlanStatus.DISABLED
    query_parallelism: int | None = None
    default_pool: str | None = None
    pools: tuple[Pool, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    mappings: tuple[Mapping, ...] = ()
    pool_triggers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanChanges:
    """What a client wants of a plan: None leaves a value. ``has_…`` says that a value is set, to
    none if it is None."""

    name: str | None = None
    namespace: str | None = None
    status: PlanStatus | None = None
    query_parallelism: int | None = None
    has_query_parallelism: bool = False
    default_pool: str | None = None
    has_default_pool: bool = False
    may_activate_disabled: bool = False
    may_deactivate: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanReport:
    """What is wrong with a plan, and what looks so."""

    errors: tuple[str, ...]
    warnings: tuple[str, ...]
