"""The history of policies, in SQL. The methods' contracts: ``PolicyStore``."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from hms_bridge.backend.columns import Columns, member
from hms_bridge.backend.schema.replication_tables import HMSB_REPL_CYCLE
from hms_bridge.backend.work import Work
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.replication import Cycle, CycleOutcome, CycleResult
from hms_bridge.policies.policies import take_cycle_number
from hms_bridge.policies.totals import count

KEPT_MAX = 10_000
"""Cycles of a policy: more than a year of one an hour, each of which found something."""

_ROW = HMSB_REPL_CYCLE.c
_RESULT = Columns(
    CycleResult,
    outcome=member("OUTCOME", CycleOutcome),
    dump_kind="DUMP_KIND",
    dump_directory="DUMP_DIRECTORY",
    until_event_id="UNTIL_EVENT_ID",
    event_count="EVENT_COUNT",
    file_count="FILE_COUNT",
    byte_count="BYTE_COUNT",
    attempt_count="ATTEMPT_COUNT",
    message="MESSAGE",
)
_CYCLE = Columns(
    Cycle,
    policy="POLICY_NAME",
    number="CYCLE_NUMBER",
    started_at_ms="STARTED_AT_MS",
    ended_at_ms="ENDED_AT_MS",
    host="HOST",
    result=_RESULT,
)


def begin_cycle(work: Work, policy: str, host: str) -> tuple[int, tuple[Cycle, ...]]:
    """See PolicyStore.begin_cycle; also the cycles that were killed before."""
    connection, now_ms = work.connection, work.clock.now_ms()
    number = take_cycle_number(connection, policy)
    killed = _end_killed(connection, policy)
    connection.execute(
        delete(HMSB_REPL_CYCLE).where(
            _ROW.POLICY_NAME == policy, _ROW.CYCLE_NUMBER <= number - KEPT_MAX
        )
    )
    connection.execute(
        insert(HMSB_REPL_CYCLE).values(
            POLICY_NAME=policy,
            CYCLE_NUMBER=number,
            STARTED_AT_MS=now_ms,
            HOST=host,
            **_RESULT.values(CycleResult(outcome=CycleOutcome.RUNNING)),
        )
    )
    return number, killed


def _end_killed(connection: Connection, policy: str) -> tuple[Cycle, ...]:
    """Whoever is alone with the policy now did not leave these."""
    running = (_ROW.POLICY_NAME == policy) & (_ROW.OUTCOME == CycleOutcome.RUNNING.value)
    killed = []
    for row in connection.execute(select(HMSB_REPL_CYCLE).where(running)).all():
        cycle = _CYCLE.read(row)
        interrupted = replace(cycle.result, outcome=CycleOutcome.INTERRUPTED)
        killed.append(replace(cycle, result=interrupted))
        count(connection, killed[-1])
    connection.execute(
        update(HMSB_REPL_CYCLE).where(running).values(OUTCOME=CycleOutcome.INTERRUPTED.value)
    )
    return tuple(killed)


def end_cycle(work: Work, policy: str, number: int, result: CycleResult) -> None:
    """See PolicyStore.end_cycle."""
    connection = work.connection
    row = connection.execute(
        select(HMSB_REPL_CYCLE).where(_is(policy, number)).with_for_update()
    ).first()
    if row is None:
        raise NoSuchObjectError(f"policy {policy}, or its history, was removed meanwhile")
    ended = replace(_CYCLE.read(row), ended_at_ms=work.clock.now_ms(), result=result)
    connection.execute(
        update(HMSB_REPL_CYCLE)
        .where(_is(policy, number))
        .values(ENDED_AT_MS=ended.ended_at_ms, **_RESULT.values(result))
    )
    count(connection, ended)
    if result.outcome is CycleOutcome.NOTHING_NEW:
        connection.execute(
            delete(HMSB_REPL_CYCLE).where(
                _is(policy, number - 1), _ROW.OUTCOME == CycleOutcome.NOTHING_NEW.value
            )
        )


def get_cycles(work: Work, policy: str | None = None, limit: int = 100) -> tuple[Cycle, ...]:
    """See PolicyStore.get_cycles."""
    query = select(HMSB_REPL_CYCLE)
    if policy is not None:
        query = query.where(_ROW.POLICY_NAME == policy)
    newest = (_ROW.STARTED_AT_MS.desc(), _ROW.POLICY_NAME, _ROW.CYCLE_NUMBER.desc())
    rows = work.connection.execute(query.order_by(*newest).limit(limit))
    return tuple(map(_CYCLE.read, rows))


def _is(policy: str, number: int) -> ColumnElement[bool]:
    return (_ROW.POLICY_NAME == policy) & (_ROW.CYCLE_NUMBER == number)
