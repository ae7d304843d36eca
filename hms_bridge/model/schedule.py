"""Scheduled queries: what is due when, and how it went."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class QueryState(IntEnum):
    """How far an execution is; the number stands on the wire, the name in the database."""

    INITED = 0
    EXECUTING = 1
    FAILED = 2
    FINISHED = 3
    TIMED_OUT = 4
    AUTO_DISABLED = 5


@dataclass(frozen=True, slots=True)
class ScheduleKey:
    """Which scheduled query: services with the same namespace execute the same."""

    name: str
    namespace: str | None = None

    def __str__(self) -> str:
        """As Hive names it."""
        return f"{self.name}@{self.namespace}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduledQuery:
    """A query, and when it is due; times in seconds."""

    key: ScheduleKey
    is_enabled: bool
    schedule: str | None = None
    user: str | None = None
    query: str | None = None
    next_execution: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DueQuery:
    """One that was given to a service to execute."""

    execution_id: int
    query: ScheduledQuery


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryProgress:
    """What a service says of an execution."""

    execution_id: int
    state: QueryState
    executor_query_id: str | None = None
    error_message: str | None = None
