"""Policies: what is replicated from where to where; cycles: what became of it each time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.errors import ConfigError
from hms_bridge.model.repl_scope import ReplScope

NAME_LENGTH_MAX = 128
"""Of a policy, in characters."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicySide:
    """One side of a replication: a database of a metastore, and settings of that side alone.

    ``metastore``: the URL, of which a password is never a part but as ``${NAME}`` of the
    environment. None: the metastore in whose database the policy is kept.
    """

    database: str
    metastore: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicationPolicy:
    """That a database is replicated, or those of its tables that the patterns cover (ReplScope).
    ``root``: where its dumps are.

    Raises ConfigError for a name that could be taken for an option or a path.
    """

    name: str
    source: PolicySide
    target: PolicySide
    root: str
    is_paused: bool = False
    included_tables: str | None = None
    excluded_tables: str | None = None

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None or len(self.name) > NAME_LENGTH_MAX:
            raise ConfigError(
                f"'{self.name}' is no name of a policy; take up to {NAME_LENGTH_MAX} letters, "
                "digits, dots, hyphens and underscores, a letter or digit first"
            )

    @property
    def scope(self) -> ReplScope:
        """The source's tables that are replicated."""
        return ReplScope(
            database_name=self.source.database.lower(),
            included_pattern=self.included_tables,
            excluded_pattern=self.excluded_tables,
        )


class CycleOutcome(Enum):
    """What became of one cycle: a dump, and its load."""

    RUNNING = "running"
    REPLICATED = "replicated"
    NOTHING_NEW = "nothing new"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """Its process was killed, or asked to stop; the next cycle goes on from there."""

    @property
    def is_success(self) -> bool:
        """Whether the replica then had what its source had."""
        return self in {CycleOutcome.REPLICATED, CycleOutcome.NOTHING_NEW}


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleResult:
    """What a cycle brought. ``dump_kind``: bootstrap, incremental or drop; events are those that
    were applied, files and bytes those that were copied. ``message``: why it failed."""

    outcome: CycleOutcome
    dump_kind: str | None = None
    dump_directory: str | None = None
    until_event_id: int | None = None
    event_count: int = 0
    file_count: int = 0
    byte_count: int = 0
    attempt_count: int = 1
    message: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Cycle:
    """One cycle of a policy, as history keeps it. Times are milliseconds since 1970."""

    policy: str
    number: int
    started_at_ms: int
    ended_at_ms: int | None
    host: str
    result: CycleResult

    @property
    def duration_ms(self) -> int | None:
        """How long it took; None while it runs."""
        if self.ended_at_ms is None:
            return None
        return max(0, self.ended_at_ms - self.started_at_ms)


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyTotals:
    """Sums over all cycles of a policy that are over, also those that history has forgotten.

    ``last_success_ms``: when the last one ended that brought the replica to its source's state;
    ``last_duration_ms`` of the last one of any outcome. None before there was one.
    """

    policy: str
    is_paused: bool
    cycle_counts: Mapping[CycleOutcome, int]
    event_count: int
    byte_count: int
    last_success_ms: int | None
    last_duration_ms: int | None
