"""Which transaction events of a run of events do nothing for the replicated database.

A metastore's log has the transactions of all databases and of every reader. Replaying them all, as
Hive does by default (docs/hive/replication.md §17), costs most of a load; leaving out too much
loses rows: a transaction may write later than it is opened. Left out are only transactions that
both begin and end in the run and touch nothing of the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hms_bridge.model.ids import EventId, TxnId


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnStep:
    """What an event says of transactions. ``touched``: they wrote, or may write, the database."""

    event_id: EventId
    opened: tuple[TxnId, ...] = ()
    touched: tuple[TxnId, ...] = ()
    ended: TxnId | None = None


def unrelated_txns(steps: Sequence[TxnStep]) -> frozenset[TxnId]:
    """Transactions that both begin and end in the run and touch nothing of the database.

    Those that were opened together stay or go together.
    """
    ended = {step.ended for step in steps if step.ended is not None}
    touched = {txn_id for step in steps for txn_id in step.touched}
    may_go = ended - touched
    return frozenset(
        txn_id for step in steps if may_go.issuperset(step.opened) for txn_id in step.opened
    )


def unrelated_events(steps: Sequence[TxnStep]) -> frozenset[EventId]:
    """Ids of open, commit and abort events that can be left out."""
    left_out = unrelated_txns(steps)
    return frozenset(
        step.event_id
        for step in steps
        if step.ended in left_out or not left_out.isdisjoint(step.opened)
    )
