"""Where an incremental dump ends that is to cover so many events at most.

Any event is an end from which the next dump goes on: a replay is whole after each. Two things come
together, though. What a bootstrap saw beside its event is named in the events up to where it ended
to read, and a load lets write ids of a table that came whole be there already in the next dump
only (docs/format/dump.md). Hive's limit is what a directory of HDFS holds (docs/hive/replication.md
§33), and looks at neither.
"""

from __future__ import annotations

from hms_bridge.metadata_store import NotificationStore
from hms_bridge.model.event import EventType
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.repl.dump.event_source import EventRange, read_events
from hms_bridge.repl.format.event_payload import AbortTxnPayload, CommitTxnPayload


def limited_end(
    after: EventId, newest: EventId, limit: int | None, *, at_least: EventId | None
) -> EventId:
    """The last event of a dump. ``limit`` None: up to the newest one; ``at_least``: what belongs
    together ends there."""
    if limit is None:
        return newest
    return min(newest, max(EventId(after + limit), at_least or EventId(0)))


def ended_within(source: NotificationStore, wanted: EventRange) -> frozenset[TxnId]:
    """Transactions that events of a range end: before it they are open."""
    ended: set[TxnId] = set()
    for event in read_events(source, wanted):
        if event.type == EventType.COMMIT_TXN.value:
            ended.add(CommitTxnPayload.of(event).txn_id)
        elif event.type == EventType.ABORT_TXN.value:
            ended.add(AbortTxnPayload.of(event).txn_id)
    return frozenset(ended)
