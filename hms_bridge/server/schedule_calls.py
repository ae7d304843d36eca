"""Scheduled queries: kept here, executed by HiveServer2."""

from __future__ import annotations

from hms_bridge.errors import MetaError
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_reports import ServedSchedules
from hms_bridge.wire.convert_schedule import (
    key_from_struct,
    key_to_struct,
    progress_from_struct,
    query_from_struct,
    query_to_struct,
)
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct, hive

_CREATE, _ALTER, _DROP = 1, 2, 3
"""Hive's ScheduledQueryMaintenanceRequestType."""


class ScheduleCalls(Calls[ServedSchedules]):
    """Services poll for what is due, and say how it goes."""

    @answers("scheduled_query_maintenance", of="request")
    def maintain(self, request: Struct) -> None:
        query = query_from_struct(given(request.scheduledQuery, "scheduledQuery"))
        if request.type == _CREATE:
            self._store.create_scheduled_query(query)
        elif request.type == _ALTER:
            self._store.alter_scheduled_query(query)
        elif request.type == _DROP:
            self._store.drop_scheduled_query(query.key)
        else:
            raise MetaError(f"invalid request: {request.type} is no kind of maintenance")

    @answers("get_scheduled_query", of="scheduleKey")
    def get(self, key: Struct) -> Struct:
        return query_to_struct(self._store.get_scheduled_query(key_from_struct(key)))

    @answers("scheduled_query_poll", of="request")
    def poll(self, request: Struct) -> Struct:
        """With a comment that names the schedule, as Hive puts it before the query."""
        due = self._store.poll_scheduled_query(request.clusterNamespace)
        if due is None:
            return hive.ScheduledQueryPollResponse()
        query = due.query
        return hive.ScheduledQueryPollResponse(
            scheduleKey=key_to_struct(query.key),
            executionId=due.execution_id,
            query=f"/* schedule: {query.key.name} */{query.query}",
            user=query.user,
        )

    @answers("scheduled_query_progress", of="info")
    def progress(self, info: Struct) -> None:
        self._store.put_query_progress(progress_from_struct(info))
