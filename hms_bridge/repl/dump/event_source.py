"""The notification log of a source, in order and without gaps; what concerns one database.

Hive does not notice if all events since the last dump are gone: docs/hive/replication.md §21, and
docs/hive/metastore.md §21.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hms_bridge.errors import EventGapError
from hms_bridge.metadata_store import NotificationStore
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.constraint import ConstraintKind
from hms_bridge.model.event import EventType, NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.constraints import added_constraints
from hms_bridge.repl.format.event_payload import (
    AbortTxnPayload,
    AllocWriteIdPayload,
    CommitTxnPayload,
    OpenTxnPayload,
    Payload,
)
from hms_bridge.repl.format.relevance import TxnStep, unrelated_events
from hms_bridge.wire.convert_constraint import TableConstraints
from hms_bridge.wire.convert_function import function_from_struct
from hms_bridge.wire.object_json import struct_from_json

_TXN_TYPES = frozenset(
    {EventType.OPEN_TXN.value, EventType.COMMIT_TXN.value, EventType.ABORT_TXN.value}
)
_PAGE = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRange:
    """Events after one id, up to and including another."""

    after: EventId
    until: EventId


def read_events(store: NotificationStore, wanted: EventRange) -> Iterator[NotificationEvent]:
    """Every event of a range, ascending.

    Raises EventGapError if any is gone from the log, also if all are (a purge came first).
    """
    last = wanted.after
    while last < wanted.until:
        page = store.get_next_notification(
            NotificationRequest(last_event_id=last, max_events=_PAGE)
        )
        if not page:
            raise _gap(wanted, EventId(last + 1), wanted.until)
        for event in page:
            if event.id != last + 1:
                raise _gap(wanted, EventId(last + 1), EventId(event.id - 1))
            last = event.id
            yield event
            if last >= wanted.until:
                return


def next_event(store: NotificationStore, after: EventId) -> NotificationEvent | None:
    """The first event after another one, as far as the log still has them; None for none."""
    events = store.get_next_notification(NotificationRequest(last_event_id=after, max_events=1))
    return events[0] if events else None


def _gap(wanted: EventRange, first: EventId, last: EventId) -> EventGapError:
    return EventGapError(
        f"events {first} to {last} are gone from the notification log, and the last dump ended at "
        f"{wanted.after}: they were purged before they were dumped. Drop the replica, then "
        "'repl dump --bootstrap' and 'repl load'; dump more often than "
        "hive.repl.event.db.listener.timetolive"
    )


def concerns(event: NotificationEvent, database: str) -> bool:
    """Whether an event is of the database, or of a transaction (which may have written to it)."""
    return event.type in _TXN_TYPES or is_of(event, database)


def is_of(event: NotificationEvent, database: str) -> bool:
    """Whether an event is of the database. Another catalog may have one of the same name; Hive's
    dump leaves those out too (ReplDumpTask.incrementalDump with CatalogFilter).

    A foreign key is of the table that has it; Hive reports it where the other table is."""
    is_default = (event.catalog_name or DEFAULT_CATALOG).lower() == DEFAULT_CATALOG
    if is_default and event.type == EventType.ADD_FOREIGN_KEY.value:
        return any(of_table.database_name == database for of_table in foreign_keys(event))
    return is_default and (event.database_name or "").lower() == database


def foreign_keys(event: NotificationEvent) -> tuple[TableConstraints, ...]:
    """What an ADD_FOREIGNKEY adds."""
    return added_constraints(Payload.of(event), ConstraintKind.FOREIGN_KEY)


def function_of(event: NotificationEvent) -> str | None:
    """The name of the function that a CREATE_FUNCTION or DROP_FUNCTION is of; None for others."""
    if event.type == EventType.DROP_FUNCTION.value:
        return Payload.of(event).text("functionName")
    if event.type == EventType.CREATE_FUNCTION.value:
        struct = struct_from_json("Function", Payload.of(event).text("functionObjJson"))
        return function_from_struct(struct).name
    return None


def left_out_events(
    store: NotificationStore, wanted: EventRange, database: str, *, is_filtered: bool
) -> frozenset[EventId]:
    """Ids of transaction events in a range that do nothing for the database.

    ``is_filtered`` False: none, as Hive does with hive.repl.filter.transactions=false.
    """
    if not is_filtered:
        return frozenset()
    steps = (
        txn_step(event, database)
        for event in read_events(store, wanted)
        if concerns(event, database)
    )
    return unrelated_events([step for step in steps if step is not None])


def txn_step(event: NotificationEvent, database: str) -> TxnStep | None:
    """What an event of the database does to transactions; None for an event of another kind.

    Write ids that a transaction got in an earlier range need no look: it was opened there too.
    """
    if event.type == EventType.OPEN_TXN.value:
        opened = OpenTxnPayload.of(event)
        return TxnStep(event_id=event.id, opened=opened.txn_ids)
    if event.type == EventType.ALLOC_WRITE_ID.value:
        allocated = AllocWriteIdPayload.of(event)
        return TxnStep(
            event_id=event.id, touched=tuple(pair.txn_id for pair in allocated.allocated)
        )
    if event.type == EventType.COMMIT_TXN.value:
        commit = CommitTxnPayload.of(event)
        is_ours = database in {name.lower() for name in commit.databases}
        return TxnStep(
            event_id=event.id, ended=commit.txn_id, touched=(commit.txn_id,) if is_ours else ()
        )
    if event.type == EventType.ABORT_TXN.value:
        aborted = AbortTxnPayload.of(event)
        is_ours = database in {name.lower() for name in aborted.databases}
        return TxnStep(
            event_id=event.id, ended=aborted.txn_id, touched=(aborted.txn_id,) if is_ours else ()
        )
    return None
