"""The history of policies, in SQL. The methods' contracts: ``PolicyStore``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from hms_bridge.backend.schema.replication_tables import HMSB_REPL_CYCLE
from hms_bridge.backend.work import Work
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.model.replication import Cycle, CycleOutcome, CycleResult
from hms_bridge.policies.policies import take_cycle_number
from hms_bridge.policies.totals import count

KEPT_MAX = 10_000
"""Cycles of a policy: more than a year of one an hour, each of which found something."""

_ROW = HMSB_REPL_CYCLE.c


def begin_cycle(work: Work, policy: str, host: str) -> int:
    """See PolicyStore.begin_cycle."""
    connection, now_ms = work.connection, work.clock.now_ms()
    number = take_cycle_number(connection, policy)
    _end_killed(connection, policy)
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
            **_values(CycleResult(outcome=CycleOutcome.RUNNING)),
        )
    )
    return number


def _end_killed(connection: Connection, policy: str) -> None:
    """Whoever is alone with the policy now did not leave these."""
    running = (_ROW.POLICY_NAME == policy) & (_ROW.OUTCOME == CycleOutcome.RUNNING.value)
    for row in connection.execute(select(HMSB_REPL_CYCLE).where(running)).all():
        killed = _cycle(row)
        interrupted = replace(killed.result, outcome=CycleOutcome.INTERRUPTED)
        count(connection, replace(killed, result=interrupted))
    connection.execute(
        update(HMSB_REPL_CYCLE).where(running).values(OUTCOME=CycleOutcome.INTERRUPTED.value)
    )


def end_cycle(work: Work, policy: str, number: int, result: CycleResult) -> None:
    """See PolicyStore.end_cycle."""
    connection = work.connection
    row = connection.execute(
        select(HMSB_REPL_CYCLE).where(_is(policy, number)).with_for_update()
    ).first()
    if row is None:
        raise NoSuchObjectError(f"policy {policy}, or its history, was removed meanwhile")
    ended = replace(_cycle(row), ended_at_ms=work.clock.now_ms(), result=result)
    connection.execute(
        update(HMSB_REPL_CYCLE)
        .where(_is(policy, number))
        .values(ENDED_AT_MS=ended.ended_at_ms, **_values(result))
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
    return tuple(_cycle(row) for row in rows)


def _is(policy: str, number: int) -> ColumnElement[bool]:
    return (_ROW.POLICY_NAME == policy) & (_ROW.CYCLE_NUMBER == number)


def _values(result: CycleResult) -> dict[str, object]:
    return {
        "OUTCOME": result.outcome.value,
        "DUMP_KIND": result.dump_kind,
        "DUMP_DIRECTORY": result.dump_directory,
        "UNTIL_EVENT_ID": result.until_event_id,
        "EVENT_COUNT": result.event_count,
        "FILE_COUNT": result.file_count,
        "BYTE_COUNT": result.byte_count,
        "ATTEMPT_COUNT": result.attempt_count,
        "MESSAGE": result.message,
    }


def _cycle(row: Row[*tuple[Any, ...]]) -> Cycle:
    return Cycle(
        policy=row.POLICY_NAME,
        number=row.CYCLE_NUMBER,
        started_at_ms=row.STARTED_AT_MS,
        ended_at_ms=row.ENDED_AT_MS,
        host=row.HOST,
        result=CycleResult(
            outcome=CycleOutcome(row.OUTCOME),
            dump_kind=row.DUMP_KIND,
            dump_directory=row.DUMP_DIRECTORY,
            until_event_id=row.UNTIL_EVENT_ID,
            event_count=row.EVENT_COUNT,
            file_count=row.FILE_COUNT,
            byte_count=row.BYTE_COUNT,
            attempt_count=row.ATTEMPT_COUNT,
            message=row.MESSAGE,
        ),
    )
