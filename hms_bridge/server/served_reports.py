"""What the server asks of a metastore for other services: scheduled queries, figures; see
served_metastore.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hms_bridge.model.report import ReplicationMetric, RuntimeStatistics
from hms_bridge.model.schedule import DueQuery, QueryProgress, ScheduledQuery, ScheduleKey


class ServedSchedules(Protocol):
    """Scheduled queries. Each is executed once at a time, by one service of its namespace."""

    def create_scheduled_query(self, query: ScheduledQuery) -> None:
        """It is due when its schedule says. Raises AlreadyExistsError, InvalidObjectError for a
        schedule that cannot be read."""

    def alter_scheduled_query(self, query: ScheduledQuery) -> None:
        """Replace all but its name; it is due when it says so itself, else when its schedule does.
        Raises NoSuchObjectError, InvalidObjectError."""

    def drop_scheduled_query(self, key: ScheduleKey) -> None:
        """With what is known of its executions. Raises NoSuchObjectError."""

    def get_scheduled_query(self, key: ScheduleKey) -> ScheduledQuery:
        """One. Raises NoSuchObjectError."""

    def poll_scheduled_query(self, namespace: str | None) -> DueQuery | None:
        """Give out the one that waits longest; None if nothing is due. An execution of which
        nothing was heard for long has timed out, and its query is given out again."""

    def put_query_progress(self, progress: QueryProgress) -> None:
        """Write down how far an execution is. Raises InvalidOperationError for a state that does
        not follow, MetaError for an unknown execution."""


class ServedReports(Protocol):
    """Figures that services write down and read again; old ones go by themselves."""

    def add_replication_metrics(self, metrics: Sequence[ReplicationMetric]) -> None:
        """Of an execution that is known, only what is given is replaced."""

    def get_replication_metrics(
        self,
        policy: str | None = None,
        execution: int | None = None,
        dump_execution: int | None = None,
    ) -> tuple[ReplicationMetric, ...]:
        """Those of the first that is given, the newest first; none without any."""

    def add_runtime_statistics(self, statistics: RuntimeStatistics) -> None:
        """With the time of now."""

    def get_runtime_statistics(
        self, weight_max: int = -1, before_seconds: int = -1
    ) -> tuple[RuntimeStatistics, ...]:
        """The newest first, until their weight is reached; negative numbers bound nothing."""
