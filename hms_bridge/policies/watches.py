"""Which policies are late, in SQL: found out by the housekeeping, once each time."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from hms_bridge.backend.dialect import insert_if_missing
from hms_bridge.backend.schema.replication_tables import HMSB_REPL_WATCH
from hms_bridge.backend.work import Work
from hms_bridge.model.lateness import LatePolicy, Watch, next_watch
from hms_bridge.policies.totals import get_totals

_ROW = HMSB_REPL_WATCH.c


def find_late(work: Work, late_after_ms: int) -> tuple[LatePolicy, ...]:
    """Those that are late and of which this was not found before; whoever else looks at the same
    time finds none of them."""
    connection, now_ms = work.connection, work.clock.now_ms()
    watches = {
        row.POLICY_NAME: Watch(since_ms=row.SINCE_MS, late_at_ms=row.LATE_AT_MS)
        for row in connection.execute(select(HMSB_REPL_WATCH).order_by(_ROW.POLICY_NAME))
    }
    late = []
    for totals in get_totals(connection):
        seen = watches.get(totals.policy)
        watch = next_watch(
            seen,
            is_paused=totals.is_paused,
            last_success_ms=totals.last_success_ms,
            now_ms=now_ms,
            late_ms=late_after_ms,
        )
        if watch == seen or not _has_put(connection, totals.policy, seen, watch):
            continue
        if watch is not None and watch.late_at_ms is not None:
            late.append(
                LatePolicy(
                    policy=totals.policy,
                    since_ms=watch.since_ms,
                    last_success_ms=totals.last_success_ms,
                    late_after_ms=late_after_ms,
                )
            )
    return tuple(late)


def _has_put(connection: Connection, policy: str, seen: Watch | None, watch: Watch | None) -> bool:
    """False, and no change, if it is not any more what was seen."""
    if seen is None and watch is not None:
        row = {"POLICY_NAME": policy, "SINCE_MS": watch.since_ms}
        insert_if_missing(connection, HMSB_REPL_WATCH, [_ROW.POLICY_NAME], row)
        return True
    if seen is None:
        return False
    late_at, noted_at = _ROW.LATE_AT_MS, seen.late_at_ms
    is_as_seen = late_at.is_(None) if noted_at is None else late_at == noted_at
    at = (_ROW.POLICY_NAME == policy, _ROW.SINCE_MS == seen.since_ms, is_as_seen)
    if watch is None:
        return connection.execute(delete(HMSB_REPL_WATCH).where(*at)).rowcount == 1
    changed = connection.execute(
        update(HMSB_REPL_WATCH)
        .where(*at)
        .values(SINCE_MS=watch.since_ms, LATE_AT_MS=watch.late_at_ms)
    )
    return changed.rowcount == 1
