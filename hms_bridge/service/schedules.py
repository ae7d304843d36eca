"""Verbs of scheduled queries (Hive: ObjectStore.scheduledQueryPoll, scheduledQueryProgress,
scheduledQueryMaintenance; docs/hive/metastore.md §35)."""

from __future__ import annotations

import logging
from dataclasses import replace

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import schedules
from hms_bridge.catalog.limits import check_progress, check_scheduled_query
from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.hooks import changes
from hms_bridge.model.cron import next_execution
from hms_bridge.model.schedule import (
    DueQuery,
    QueryProgress,
    QueryState,
    ScheduledQuery,
    ScheduleKey,
)
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads, writes

_LOG = logging.getLogger(__name__)
_ERROR_LENGTH_MAX = 1000
"""ObjectStore.abbreviateErrorMessage."""
_ENDS = (QueryState.FAILED, QueryState.FINISHED, QueryState.TIMED_OUT)
_MAY_FOLLOW = {
    QueryState.INITED: (QueryState.EXECUTING, *_ENDS),
    QueryState.EXECUTING: (QueryState.EXECUTING, *_ENDS),
}


def _create(unit: UnitOfWork, query: ScheduledQuery) -> None:
    check_scheduled_query(query)
    schedules.hold_all(unit.connection)
    if schedules.find_query(unit.connection, query.key) is not None:
        raise AlreadyExistsError(f"Scheduled query with name: {query.key} already exists.")
    schedules.insert_query(unit.connection, _scheduled(unit, query))
    unit.points.append(changes.query_changed("create", query))


def _alter(unit: UnitOfWork, query: ScheduledQuery) -> None:
    check_scheduled_query(query)
    number, _ = _require(unit.connection, query.key)
    new = query if query.next_execution is not None else _scheduled(unit, query)
    if not schedules.update_query(unit.connection, number, new):
        raise _unknown(query.key)
    unit.points.append(changes.query_changed("alter", new))


def _drop(unit: UnitOfWork, key: ScheduleKey) -> None:
    number, query = _require(unit.connection, key)
    if not schedules.delete_query(unit.connection, number):
        raise _unknown(key)
    unit.points.append(changes.query_changed("drop", query))


def _get(connection: Connection, key: ScheduleKey) -> ScheduledQuery:
    return _require(connection, key)[1]


def _poll(unit: UnitOfWork, namespace: str | None) -> DueQuery | None:
    """Here also ends what its service will never end, as a task of Hive's does every minute: only
    who asks for work needs it."""
    _end_silent(unit)
    due = schedules.first_due(unit.connection, namespace, unit.now_seconds)
    if due is None:
        return None
    number, query = due
    following = _following(unit, query)
    execution = schedules.start(unit.connection, number, following, unit.now_seconds)
    return DueQuery(execution_id=execution, query=query)


def _end_silent(unit: UnitOfWork) -> None:
    settings, now = unit.settings.reports, unit.now_seconds
    before = now - settings.query_timeout_ms // 1000
    for execution in schedules.silent_since(unit.connection, before):
        why = f"nothing was heard of it for {settings.query_timeout_ms // 1000} seconds"
        schedules.end(unit.connection, execution, QueryState.TIMED_OUT, now, ERROR_MESSAGE=why)
    schedules.free_unexecuted(unit.connection)
    schedules.forget_ended(unit.connection, now - settings.execution_age_max_ms // 1000)


def _progress(unit: UnitOfWork, progress: QueryProgress) -> None:
    check_progress(progress)
    old = schedules.state_of(unit.connection, progress.execution_id)
    if old is None:
        raise MetaError(f"there is no execution {progress.execution_id} of a scheduled query")
    if progress.state not in _MAY_FOLLOW.get(old, ()):
        raise InvalidOperationError(f"Invalid state change: {old.name}=>{progress.state.name}")
    more = {}
    if progress.executor_query_id is not None:
        more["EXECUTOR_QUERY_ID"] = progress.executor_query_id
    if progress.error_message is not None:
        more["ERROR_MESSAGE"] = _shortened(progress.error_message)
    write = schedules.end if progress.state in _ENDS else schedules.go_on
    write(unit.connection, progress.execution_id, progress.state, unit.now_seconds, **more)


def _scheduled(unit: UnitOfWork, query: ScheduledQuery) -> ScheduledQuery:
    """With the time when it is due next."""
    due = None if query.schedule is None else next_execution(query.schedule, unit.now_seconds)
    return replace(query, next_execution=due)


def _following(unit: UnitOfWork, query: ScheduledQuery) -> int | None:
    """When it is due after this time. What another metastore wrote and nobody here can read is not
    due again, for it must not keep others from being polled."""
    try:
        return _scheduled(unit, query).next_execution
    except InvalidObjectError as error:
        _LOG.warning(
            "scheduled query %s is executed once more and then no longer: %s", query.key, error
        )
        return None


def _require(connection: Connection, key: ScheduleKey) -> tuple[int, ScheduledQuery]:
    stored = schedules.find_query(connection, key)
    if stored is None:
        raise _unknown(key)
    return stored


def _unknown(key: ScheduleKey) -> NoSuchObjectError:
    return NoSuchObjectError(f"There is no scheduled query for: {key}")


def _shortened(text: str) -> str:
    """A long one may hold a stack trace: its first line says what happened."""
    if len(text) < _ERROR_LENGTH_MAX:
        return text
    line = text.partition("\n")[0]
    return line if len(line) <= _ERROR_LENGTH_MAX else f"{line[: _ERROR_LENGTH_MAX - 3]}..."


class ScheduleVerbs(VerbFamily):
    """The ServedSchedules."""

    create_scheduled_query = writes(_create)
    alter_scheduled_query = writes(_alter)
    drop_scheduled_query = writes(_drop)
    get_scheduled_query = reads(sql(_get))
    poll_scheduled_query = writes(_poll)
    put_query_progress = writes(_progress)
