"""Roles, privileges, functions, procedures and scheduled queries that two metastores change at
once: the other one acts between two statements of the first, and what comes of it is what comes of
one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from hms_bridge.backend.schema.notification_tables import HMSB_HOOK_POINT
from hms_bridge.errors import InvalidOperationError, MetaError, NoSuchObjectError
from hms_bridge.model.catalog import PrincipalType
from hms_bridge.model.event import EventType
from hms_bridge.model.function import Function, Resource, ResourceType
from hms_bridge.model.privilege import (
    Grant,
    ObjectKind,
    Principal,
    Role,
    RoleGrant,
    Securable,
)
from hms_bridge.model.procedure import StoredProcedure
from hms_bridge.model.schedule import QueryProgress, QueryState, ScheduledQuery, ScheduleKey
from hms_bridge.service.hook_positions import StoredPositions
from hms_bridge.service.metastore_service import MetastoreService
from tests.conformance.objects import events_after
from tests.service.test_objects_of_one_moment import ONE_WRITER, Pair, pair, somebody_waits
from tests.support.crowd import wait_until
from tests.support.databases import SERVER_URL
from tests.support.stored_rows import change_rows, rows_of

pytestmark = ONE_WRITER
__all__ = ["pair"]

KEY = ScheduleKey("q", "ns")
QUERY = ScheduledQuery(key=KEY, is_enabled=True, schedule="0 0 0 1 1 ? *", user="u", query="select")
LATER = 2**31 - 1
MEMBER = Principal("member", PrincipalType.ROLE)


def _grant(metastore: MetastoreService) -> None:
    given = RoleGrant(role=Role(name="given", owner="hive"), principal=MEMBER, grantor="hive")
    metastore.grant_role(given)


def _verbs(pair: Pair) -> list[str]:
    """What hooks hear of changes."""
    rows = pair.one._transactions.read(
        lambda connection: connection.execute(
            select(HMSB_HOOK_POINT.c.MESSAGE).order_by(HMSB_HOOK_POINT.c.POINT_ID)
        ).all()
    )
    return [json.loads(row.MESSAGE)["verb"] for row in rows]


def _hear(pair: Pair) -> None:
    StoredPositions(pair.one._transactions).register("hook")
    for metastore in (pair.one, pair.other):
        metastore._transactions.look_for_hooks()


def _change(pair: Pair, table: str, where: dict[str, object], **values: object) -> None:
    assert SERVER_URL is not None
    change_rows(SERVER_URL, table, where, **values)


def _make_due(pair: Pair) -> None:
    pair.one.create_scheduled_query(QUERY)
    _change(pair, "SCHEDULED_QUERIES", {"SCHEDULE_NAME": "q"}, NEXT_EXECUTION=1)


def _rows(table: str) -> list[dict[str, object]]:
    assert SERVER_URL is not None
    return rows_of(SERVER_URL, table)


def test_a_role_that_comes_as_it_is_granted_another_is_held(pair: Pair) -> None:
    """Else what it was granted stays when another one drops it, for the next role of its name."""
    pair.one.create_role(Role(name="given", owner="hive"))
    granting: list[Future[None]] = []

    def drop() -> None:
        wait_until(made.done)
        pair.other.drop_role(MEMBER.name)

    def grant() -> None:
        granting.append(threads.submit(_grant, pair.one))
        wait_until(lambda: granting[0].done() or somebody_waits(pair.other))

    with ThreadPoolExecutor(4) as threads, ThreadPoolExecutor(1) as beside:
        pair.meanwhile("INTO ROLES", grant, of=pair.other)
        pair.meanwhile("JOIN ROLES", lambda: pair.beside(beside, drop))
        made = threads.submit(pair.other.create_role, Role(name=MEMBER.name, owner="hive"))
        made.result()
        granting[0].result()
    assert MEMBER.name not in pair.one.get_role_names()

    pair.one.create_role(Role(name=MEMBER.name, owner="hive"))
    assert pair.one.get_roles_of(MEMBER) == ()


def require_gone(pair: Pair, act: Callable[[], object]) -> None:
    """Another one has dropped the query since it was looked up: that is all that hooks hear."""
    _hear(pair)
    pair.one.create_scheduled_query(QUERY)
    pair.meanwhile("FROM SCHEDULED_QUERIES", lambda: pair.other.drop_scheduled_query(KEY))

    with pytest.raises(NoSuchObjectError):
        act()
    assert _verbs(pair) == ["create", "drop"]


def test_a_scheduled_query_that_two_drop_is_dropped_once(pair: Pair) -> None:
    require_gone(pair, lambda: pair.one.drop_scheduled_query(KEY))


def test_a_scheduled_query_is_not_altered_after_another_one_dropped_it(pair: Pair) -> None:
    require_gone(pair, lambda: pair.one.alter_scheduled_query(QUERY))


@pytest.mark.parametrize("change", [{"is_enabled": False}, {"next_execution": LATER}])
def test_a_query_that_is_altered_meanwhile_is_not_executed_as_it_was(
    pair: Pair, change: dict[str, Any]
) -> None:
    _make_due(pair)
    altered = replace(QUERY, **{"next_execution": 1, **change})
    pair.meanwhile("NEXT_EXECUTION <=", lambda: pair.other.alter_scheduled_query(altered))

    assert pair.one.poll_scheduled_query("ns") is None
    assert pair.one.get_scheduled_query(KEY) == altered
    assert _rows("SCHEDULED_EXECUTIONS") == []


def test_a_query_is_executed_as_it_was_altered_meanwhile(pair: Pair) -> None:
    _make_due(pair)
    altered = replace(QUERY, query="another", next_execution=1)
    pair.meanwhile("NEXT_EXECUTION <=", lambda: pair.other.alter_scheduled_query(altered))

    due = pair.one.poll_scheduled_query("ns")
    assert due is not None
    assert due.query == altered


def test_an_execution_that_ends_as_it_is_given_up_ends_once(pair: Pair) -> None:
    """Its service hears that it was given up, or it has ended as the service said."""
    _make_due(pair)
    due = pair.one.poll_scheduled_query("ns")
    assert due is not None
    execution = {"SCHEDULED_EXECUTION_ID": due.execution_id}
    _change(pair, "SCHEDULED_EXECUTIONS", execution, LAST_UPDATE_TIME=1)
    finished = QueryProgress(execution_id=due.execution_id, state=QueryState.FINISHED)
    taken: list[QueryState] = []

    def finish() -> None:
        with suppress(InvalidOperationError):
            pair.other.put_query_progress(finished)
            taken.append(finished.state)

    with ThreadPoolExecutor(1) as beside:
        pair.meanwhile("LAST_UPDATE_TIME <", lambda: pair.beside(beside, finish))
        pair.one.poll_scheduled_query("ns")

    (row,) = _rows("SCHEDULED_EXECUTIONS")
    assert row["STATE"] == (QueryState.FINISHED if taken else QueryState.TIMED_OUT).name


def test_an_execution_that_began_as_others_are_freed_goes_on(pair: Pair) -> None:
    """What a Hive that was killed has left is freed by two who ask for work: the second must not
    free what the first has begun, or the query would be executed twice at a time."""
    _make_due(pair)
    _change(pair, "SCHEDULED_QUERIES", {"SCHEDULE_NAME": "q"}, ACTIVE_EXECUTION_ID=77)
    with ThreadPoolExecutor(1) as beside:
        poll = partial(pair.other.poll_scheduled_query, "ns")
        pair.meanwhile("UPDATE SCHEDULED_QUERIES", lambda: pair.beside(beside, poll))
        due = pair.one.poll_scheduled_query("ns")

    assert due is not None
    (row,) = _rows("SCHEDULED_QUERIES")
    assert row["ACTIVE_EXECUTION_ID"] == due.execution_id


def _function(pair: Pair, **more: Any) -> Function:
    made = Function(name="f", database_name=pair.database, class_name="a.B")
    return replace(made, **more)


def _drop_and_make_function(pair: Pair) -> None:
    with suppress(NoSuchObjectError):
        pair.other.drop_function(pair.database, "f")
    pair.other.create_function(_function(pair, class_name="a.C"))


def test_who_drops_a_function_keeps_others_from_dropping_it(pair: Pair) -> None:
    """Else the second event of a drop would stand behind that of a function that came again, and
    a replica would be without it."""
    pair.one.create_function(_function(pair))
    first = pair.one.get_current_event_id()
    with ThreadPoolExecutor(1) as beside:
        act = partial(pair.beside, beside, partial(_drop_and_make_function, pair))
        pair.meanwhile("DELETE FROM FUNC_RU", act)
        pair.one.drop_function(pair.database, "f")

    logged = [event.type for event in events_after(pair.one, first)]
    assert logged == [EventType.DROP_FUNCTION, EventType.CREATE_FUNCTION]
    assert pair.one.get_function(pair.database, "f").class_name == "a.C"


def test_a_function_is_not_altered_after_another_one_dropped_it(pair: Pair) -> None:
    _hear(pair)
    pair.one.create_function(_function(pair))
    first = pair.one.get_current_event_id()
    altered = _function(pair, resources=(Resource(type=ResourceType.JAR, uri="file:/a.jar"),))
    drop = partial(pair.other.drop_function, pair.database, "f")
    with ThreadPoolExecutor(1) as beside:
        pair.meanwhile("FROM FUNCS", lambda: pair.beside(beside, drop))
        pair.one.alter_function(pair.database, "f", altered)

    assert _verbs(pair) == ["alter"]
    (dropped,) = events_after(pair.one, first)
    assert dropped.type == EventType.DROP_FUNCTION
    assert pair.one.get_functions(pair.database) == ()


def test_a_procedure_that_is_put_as_another_one_drops_it_is_there_or_was_dropped(
    pair: Pair,
) -> None:
    _hear(pair)
    procedure = StoredProcedure(name="p", database_name=pair.database, owner_name="u", source="a")
    pair.one.put_procedure(procedure)
    with ThreadPoolExecutor(1) as beside:
        drop = partial(pair.other.drop_procedure, pair.database, "p")
        pair.meanwhile("FROM STORED_PROCS", lambda: pair.beside(beside, drop))
        pair.one.put_procedure(replace(procedure, source="b"))

    assert _verbs(pair) == ["put", "put", "drop"]
    assert pair.one.get_procedure_names(pair.database) == ()


@pytest.mark.parametrize("is_option_only", [False, True])
def test_a_privilege_that_two_revoke_is_revoked_once(pair: Pair, is_option_only: bool) -> None:
    _hear(pair)
    grant = Grant(
        object=Securable(kind=ObjectKind.TABLE, database=pair.database, name="t"),
        principal=Principal("ann", PrincipalType.USER), privilege="SELECT", grantor="hive",
        grantor_type=PrincipalType.USER, has_grant_option=True,
    )  # fmt: skip
    pair.one.grant_privileges([grant])
    refused: list[str] = []

    def revoke(metastore: MetastoreService) -> None:
        try:
            metastore.revoke_privileges([grant], is_option_only)
        except MetaError as error:
            refused.append(str(error))

    with ThreadPoolExecutor(1) as beside:
        act = partial(pair.beside, beside, partial(revoke, pair.other))
        pair.meanwhile("FROM TBL_PRIVS", act)
        revoke(pair.one)

    assert len(refused) == 1
    assert _verbs(pair) == ["grant", "revoke"]
