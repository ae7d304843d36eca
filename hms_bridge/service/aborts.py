"""What follows an abort, whoever made it: a client, a time-out, a database that was dropped."""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.catalog.parameters import mark_incompatible
from hms_bridge.model.ids import WriteId
from hms_bridge.notification import events
from hms_bridge.service.replica_gate import is_replicated
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn.abort import AbortOutcome
from hms_bridge.txn.write_ids import WrittenTable


def log_abort(unit: UnitOfWork, outcome: AbortOutcome | None) -> None:
    """Events of what was aborted, and a mark on databases whose replay it broke off. Who expects
    what these wrote learns that they have ended: their commit would fail, and others with it."""
    if outcome is None:
        return
    ended = [txn.id for txn in outcome.aborted]
    unit.news.append(lambda foresight: foresight.forget(ended))
    named = sorted({policy.partition(".")[0] for policy in outcome.broken_policies})
    broken = [name for name in named if is_replicated(unit.connection, name)]
    if broken:
        mark_incompatible(unit.connection, broken)
    for txn in outcome.logged:
        unit.events.append(events.txn_aborted(txn.id, as_told(txn.written), unit.now_seconds))


def as_told(written: Sequence[WrittenTable]) -> list[tuple[str, WriteId]]:
    """What a transaction wrote, as the event of its end names it."""
    return [(table.database_name, table.write_id) for table in written]
