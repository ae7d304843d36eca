"""Sums over the cycles of policies, in SQL. The methods' contracts: ``PolicyStore``."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from hms_bridge.backend.schema.replication_tables import HMSB_REPL_TOTAL
from hms_bridge.model.replication import Cycle, CycleOutcome, PolicyTotals
from hms_bridge.policies.policies import get_policies

_ROW = HMSB_REPL_TOTAL.c


def count(connection: Connection, cycle: Cycle) -> None:
    """Add a cycle that is over to its policy's sums."""
    result = cycle.result
    key = {"POLICY_NAME": cycle.policy, "OUTCOME": result.outcome.value}
    last = {"LAST_STARTED_AT_MS": cycle.started_at_ms, "LAST_ENDED_AT_MS": cycle.ended_at_ms}
    changed = connection.execute(
        update(HMSB_REPL_TOTAL)
        .where(_ROW.POLICY_NAME == cycle.policy, _ROW.OUTCOME == result.outcome.value)
        .values(
            CYCLE_COUNT=_ROW.CYCLE_COUNT + 1,
            EVENT_COUNT=_ROW.EVENT_COUNT + result.event_count,
            BYTE_COUNT=_ROW.BYTE_COUNT + result.byte_count,
            **last,
        )
    )
    if changed.rowcount == 0:
        sums = {"EVENT_COUNT": result.event_count, "BYTE_COUNT": result.byte_count}
        connection.execute(insert(HMSB_REPL_TOTAL).values(CYCLE_COUNT=1, **key, **last, **sums))


def get_totals(connection: Connection) -> tuple[PolicyTotals, ...]:
    """See PolicyStore.get_totals."""
    rows: dict[str, list[Row[*tuple[Any, ...]]]] = defaultdict(list)
    for row in connection.execute(select(HMSB_REPL_TOTAL)):
        rows[row.POLICY_NAME].append(row)
    return tuple(
        _totals(policy.name, rows[policy.name], is_paused=policy.is_paused)
        for policy in get_policies(connection)
    )


def _totals(name: str, rows: list[Row[*tuple[Any, ...]]], *, is_paused: bool) -> PolicyTotals:
    ended = [row for row in rows if row.LAST_ENDED_AT_MS is not None]
    last = max(ended, key=lambda row: row.LAST_ENDED_AT_MS, default=None)
    good = [row.LAST_ENDED_AT_MS for row in ended if CycleOutcome(row.OUTCOME).is_success]
    return PolicyTotals(
        policy=name,
        is_paused=is_paused,
        cycle_counts={CycleOutcome(row.OUTCOME): row.CYCLE_COUNT for row in rows},
        event_count=sum(row.EVENT_COUNT for row in rows),
        byte_count=sum(row.BYTE_COUNT for row in rows),
        last_success_ms=max(good, default=None),
        last_duration_ms=None if last is None else _duration_ms(last),
    )


def _duration_ms(row: Row[*tuple[Any, ...]]) -> int:
    duration_ms: int = row.LAST_ENDED_AT_MS - row.LAST_STARTED_AT_MS
    return max(0, duration_ms)
