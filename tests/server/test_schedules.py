"""Scheduled queries, as HiveServer2 keeps and executes them (docs/hive/metastore.md §35)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.wire.structs import Struct, hive
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.simulated_clock import SimulatedClock
from tests.support.stored_rows import change_rows, rows_of

CREATE, ALTER, DROP = 1, 2, 3
INITED, EXECUTING, FAILED, FINISHED, TIMED_OUT = range(5)
DAY = 86_400


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def served(tmp_path: Path, clock: SimulatedClock) -> Iterator[ServedMetastore]:
    with served_metastore(tmp_path, clock) as served:
        yield served


def _query(name: str = "q", namespace: str = "ns", **more: Any) -> Struct:
    fields = {"enabled": True, "schedule": "0 * * * * ? *", "user": "ann", "query": "select 1"}
    key = hive.ScheduledQueryKey(scheduleName=name, clusterNamespace=namespace)
    return hive.ScheduledQuery(scheduleKey=key, **(fields | more))


def _maintain(served: ServedMetastore, kind: int, query: Struct) -> None:
    request = hive.ScheduledQueryMaintenanceRequest(type=kind, scheduledQuery=query)
    served.call("scheduled_query_maintenance", request=request)


def _get(served: ServedMetastore, name: str = "q", namespace: str = "ns") -> Struct:
    key = hive.ScheduledQueryKey(scheduleName=name, clusterNamespace=namespace)
    found: Struct = served.call("get_scheduled_query", scheduleKey=key)
    return found


def _poll(served: ServedMetastore, namespace: str = "ns") -> Struct:
    request = hive.ScheduledQueryPollRequest(clusterNamespace=namespace)
    found: Struct = served.call("scheduled_query_poll", request=request)
    return found


def _progress(served: ServedMetastore, execution: int, state: int, **more: Any) -> None:
    info = hive.ScheduledQueryProgressInfo(scheduledExecutionId=execution, state=state, **more)
    served.call("scheduled_query_progress", info=info)


def _executions(served: ServedMetastore) -> list[str]:
    return [row["STATE"] for row in rows_of(served.database_url, "SCHEDULED_EXECUTIONS")]


def test_a_query_is_made_changed_and_dropped(
    served: ServedMetastore, clock: SimulatedClock
) -> None:
    with pytest.raises(NoSuchObjectError, match="There is no scheduled query for: q@ns"):
        _get(served)
    _maintain(served, CREATE, _query())
    now = clock.now_ms() // 1000
    query = _get(served)
    assert 0 < query.nextExecution - now <= 60
    assert query == _query(nextExecution=query.nextExecution)
    with pytest.raises(AlreadyExistsError, match="q@ns already exists"):
        _maintain(served, CREATE, _query())
    _maintain(served, CREATE, _query(namespace="other"))
    _maintain(served, ALTER, _query(enabled=False, query="select 2", nextExecution=7))
    assert _get(served) == _query(enabled=False, query="select 2", nextExecution=7)
    _maintain(served, ALTER, _query())
    assert _get(served).nextExecution == query.nextExecution
    _maintain(served, DROP, _query())
    for kind in (ALTER, DROP):
        with pytest.raises(NoSuchObjectError):
            _maintain(served, kind, _query())
    assert _get(served, namespace="other").enabled is True
    with pytest.raises(MetaError, match="no kind of maintenance"):
        _maintain(served, 4, _query())


def test_what_does_not_fit_is_refused(served: ServedMetastore) -> None:
    for wrong in ({"schedule": "asd asd"}, {"query": "q" * 4001}, {"user": "u" * 257},
                  {"name": "n" * 257}):  # fmt: skip
        with pytest.raises(InvalidObjectError):
            _maintain(served, CREATE, _query(**wrong))
    _maintain(served, CREATE, _query(schedule=None))
    assert _get(served).nextExecution is None


def test_a_query_is_given_out_once_at_a_time(
    served: ServedMetastore, clock: SimulatedClock
) -> None:
    _maintain(served, CREATE, _query())
    _maintain(served, CREATE, _query("disabled", enabled=False))
    assert _poll(served) == hive.ScheduledQueryPollResponse()
    clock.sleep_seconds(61)
    assert _poll(served, "other").query is None
    due = _poll(served)
    assert (due.query, due.user) == ("/* schedule: q */select 1", "ann")
    assert due.scheduleKey == _query().scheduleKey
    clock.sleep_seconds(61)
    _progress(served, due.executionId, EXECUTING, executorQueryId="hive_1")
    assert _poll(served).query is None, "it is still executed"
    clock.sleep_seconds(61)
    _progress(served, due.executionId, FINISHED)
    assert _executions(served) == ["FINISHED"]
    second = _poll(served)
    assert second.executionId > due.executionId
    _progress(served, second.executionId, FAILED, errorMessage="e" * 2500 + "\nx")
    row = rows_of(served.database_url, "SCHEDULED_EXECUTIONS")[-1]
    assert (row["STATE"], row["ERROR_MESSAGE"]) == ("FAILED", "e" * 997 + "...")
    assert row["END_TIME"] == clock.now_ms() // 1000
    for state in (EXECUTING, FINISHED, 9):
        with pytest.raises((InvalidOperationError, MetaError), match="Invalid state|is 9"):
            _progress(served, second.executionId, state)
    with pytest.raises(MetaError, match="no execution 77"):
        _progress(served, 77, FINISHED)
    assert _poll(served).query is None, "its time has not come again"


def test_an_execution_that_is_silent_times_out(
    served: ServedMetastore, clock: SimulatedClock
) -> None:
    _maintain(served, CREATE, _query())
    clock.sleep_seconds(61)
    first = _poll(served)
    clock.sleep_seconds(119)
    assert _poll(served).query is None
    clock.sleep_seconds(2)
    second = _poll(served)
    assert second.executionId > first.executionId
    assert _executions(served) == ["TIMED_OUT", "INITED"]
    row = rows_of(served.database_url, "SCHEDULED_EXECUTIONS")[0]
    assert row["ERROR_MESSAGE"] == "nothing was heard of it for 120 seconds"
    with pytest.raises(InvalidOperationError, match="TIMED_OUT=>FINISHED"):
        _progress(served, first.executionId, FINISHED)


def test_an_execution_that_is_not_there_holds_no_query(
    served: ServedMetastore, clock: SimulatedClock
) -> None:
    _maintain(served, CREATE, _query())
    where = {"SCHEDULE_NAME": "q"}
    change_rows(served.database_url, "SCHEDULED_QUERIES", where, ACTIVE_EXECUTION_ID=77)
    clock.sleep_seconds(61)
    assert _poll(served).query is not None


def test_old_executions_are_forgotten_and_dropped_ones_go(
    served: ServedMetastore, clock: SimulatedClock
) -> None:
    _maintain(served, CREATE, _query())
    clock.sleep_seconds(61)
    _progress(served, _poll(served).executionId, FINISHED)
    clock.sleep_seconds(31 * DAY)
    due = _poll(served)
    assert _executions(served) == ["INITED"]
    _maintain(served, DROP, _query())
    assert _executions(served) == []
    with pytest.raises(MetaError, match="no execution"):
        _progress(served, due.executionId, FINISHED)


def test_a_schedule_that_nobody_can_read_stops_no_other(
    served: ServedMetastore, clock: SimulatedClock
) -> None:
    _maintain(served, CREATE, _query())
    _maintain(served, CREATE, _query("r"))
    where = {"SCHEDULE_NAME": "q"}
    change_rows(served.database_url, "SCHEDULED_QUERIES", where, SCHEDULE="odd")
    clock.sleep_seconds(61)
    assert {_poll(served).scheduleKey.scheduleName for _ in "12"} == {"q", "r"}
    assert _get(served).nextExecution is None
