"""Scheduled queries: thrift structs to records and back."""

from __future__ import annotations

from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.schedule import (
    QueryProgress,
    QueryState,
    ScheduledQuery,
    ScheduleKey,
)
from hms_bridge.wire.fields import both_ways, filled, inner_required, member, required, truth

key_to_struct, key_from_struct = both_ways(
    ScheduleKey,
    "ScheduledQueryKey",
    name=filled("scheduleName"),
    namespace="clusterNamespace",
)
query_to_struct, query_from_struct = both_ways(
    ScheduledQuery,
    "ScheduledQuery",
    key=inner_required("scheduleKey", (key_to_struct, key_from_struct)),
    is_enabled=truth("enabled"),
    schedule="schedule",
    user="user",
    query="query",
    next_execution="nextExecution",
    error=InvalidObjectError,
)
_, progress_from_struct = both_ways(
    QueryProgress,
    "ScheduledQueryProgressInfo",
    execution_id=required("scheduledExecutionId"),
    state=member("state", {int(state): state for state in QueryState}, "state of a query"),
    executor_query_id="executorQueryId",
    error_message="errorMessage",
)
