"""Replay the events of an incremental dump, in order, each whole or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hms_bridge.model.catalog import TableType
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.repl.format.constraints import ADDED
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.event_payload import (
    AbortTxnPayload,
    AllocWriteIdPayload,
    CommitTxnPayload,
    OpenTxnPayload,
    Payload,
)
from hms_bridge.repl.format.passed_kinds import refusal
from hms_bridge.repl.format.reader import DumpedEvent, DumpedFunction, DumpReader
from hms_bridge.repl.format.relevance import TxnStep, unrelated_events, unrelated_txns
from hms_bridge.repl.format.stored_message import is_harmless_compaction
from hms_bridge.repl.format.untrusted import DumpRules, checked_name
from hms_bridge.repl.load.ahead import go_ahead
from hms_bridge.repl.load.events import (
    commit,
    constraint,
    database,
    function,
    partition,
    table,
    txn,
)
from hms_bridge.repl.load.events.context import (
    ObjectChange,
    ObjectChanges,
    ReplayContext,
    partition_key,
)
from hms_bridge.repl.load.events.place import refuse_moved
from hms_bridge.repl.load.last_counts import LastCounts
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.windows import windows_of

_Replay = Callable[[ReplayContext, DumpedEvent], None]

_REPLAYS: Mapping[str, _Replay] = {
    DumpType.OPEN_TXN.value: txn.open_txn,
    DumpType.ALLOC_WRITE_ID.value: txn.allocate_write_ids,
    DumpType.COMMIT_TXN.value: commit.commit_txn,
    DumpType.ABORT_TXN.value: txn.abort_txn,
    DumpType.CREATE_DATABASE.value: database.create_database,
    DumpType.ALTER_DATABASE.value: database.alter_database,
    DumpType.CREATE_FUNCTION.value: function.create_function,
    DumpType.DROP_FUNCTION.value: function.drop_function,
    **dict.fromkeys(ADDED, constraint.add_constraints),
    DumpType.DROP_CONSTRAINT.value: constraint.drop_constraint,
    DumpType.CREATE_TABLE.value: table.create_table,
    DumpType.ALTER_TABLE.value: table.alter_table,
    DumpType.RENAME_TABLE.value: table.rename_table,
    DumpType.TRUNCATE_TABLE.value: table.truncate_table,
    DumpType.DROP_TABLE.value: table.drop_table,
    DumpType.RENAME_DROP_TABLE.value: table.drop_renamed,
    DumpType.ADD_PARTITION.value: partition.add_partition,
    DumpType.ALTER_PARTITION.value: partition.alter_partition,
    DumpType.RENAME_PARTITION.value: partition.rename_partition,
    DumpType.TRUNCATE_PARTITION.value: partition.truncate_partition,
    DumpType.DROP_PARTITION.value: partition.drop_partition,
}

_DISPENSABLE = frozenset(
    {
        *ADDED,
        DumpType.DROP_CONSTRAINT.value,
        DumpType.CREATE_FUNCTION.value,
        DumpType.DROP_FUNCTION.value,
    }
)
"""Kinds that a replica may do without all the same (``hms.bridge.repl.passed.kinds``)."""

_OF_TXNS = frozenset(
    {
        DumpType.OPEN_TXN.value,
        DumpType.ALLOC_WRITE_ID.value,
        DumpType.COMMIT_TXN.value,
        DumpType.ABORT_TXN.value,
    }
)
_BEGINNING = frozenset({DumpType.OPEN_TXN.value, DumpType.ALLOC_WRITE_ID.value})
"""A commit before one of these may as well come after it."""
_ALTERED = frozenset({DumpType.ALTER_TABLE.value, DumpType.ALTER_PARTITION.value})
_RECORDED_AT_ONCE = frozenset(
    {
        DumpType.CREATE_TABLE.value,
        DumpType.RENAME_TABLE.value,
        DumpType.DROP_TABLE.value,
        DumpType.RENAME_DROP_TABLE.value,
        DumpType.RENAME_PARTITION.value,
        DumpType.DROP_PARTITION.value,
    }
)
"""Events after which earlier ones cannot be repeated, because names mean other objects now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IncrementalPlan:
    """What an incremental load will do, found out without touching the target.

    ``left_out``: transactions of others, and alterations that a later one makes again.
    ``counts_alone``: other alterations that note statistics alone. ``changes``: when tables and
    partitions come and go. ``counts``: events by kind that will be applied;
    ``passed``: kinds that have no effect here. ``functions``: that it makes. ``unrelated``:
    transactions that are left out whole.
    """

    left_out: frozenset[EventId]
    counts_alone: frozenset[EventId]
    changes: ObjectChanges
    counts: Mapping[str, int]
    passed: Mapping[str, int]
    functions: tuple[DumpedFunction, ...] = ()
    unrelated: frozenset[TxnId] = frozenset()


def plan_incremental(reader: DumpReader, after: EventId) -> IncrementalPlan:
    """Read all events once. Raises ReplError for one that cannot be replayed here."""
    source = reader.source_database
    steps: list[TxnStep] = []
    changes: dict[str, list[tuple[EventId, ObjectChange]]] = {}
    counts: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    ids: dict[EventId, str] = {}
    functions: list[DumpedFunction] = []
    counted = LastCounts()
    for event in reader.events():
        # Of loaded events too: what was dropped or made before explains what is not there now.
        for name, change in _table_changes(reader, event):
            changes.setdefault(name, []).append((event.id, change))
        if event.id <= after:
            continue
        if event.type in _ALTERED:
            refuse_moved(event, reader.rules)
            counted.add(event)
        ids[event.id] = event.type
        step = _txn_step(event, source)
        if step is not None:
            steps.append(step)
        elif _is_passed(event, reader.rules):
            passed[event.type] += 1
        elif event.type == DumpType.CREATE_FUNCTION.value:
            functions.append(reader.event_function(event))
    left_out = unrelated_events(steps) | counted.superseded
    replayed = _REPLAYS.keys() - passed.keys()
    for event_id, event_type in ids.items():
        if event_id not in left_out and event_type in replayed:
            counts[event_type] += 1
    return IncrementalPlan(
        left_out=left_out,
        counts_alone=counted.last,
        changes=ObjectChanges(by_name={name: tuple(of_name) for name, of_name in changes.items()}),
        counts=counts,
        passed=passed,
        functions=tuple(functions),
        unrelated=unrelated_txns(steps),
    )


def _is_passed(event: DumpedEvent, rules: DumpRules) -> bool:
    """Whether an event has no effect here. Raises ReplError if it must have one and cannot."""
    if _replay_of(event, rules) is not None:
        return False
    if event.type in rules.passed_kinds:
        return True
    if event.type == DumpType.INSERT.value:
        table_type = event.read(Payload).fields.get("tableType")
        if table_type == TableType.EXTERNAL_TABLE.value:
            return True
    elif event.type == DumpType.UNKNOWN.value and is_harmless_compaction(event.payload):
        return True
    raise refusal(event.where, event.type, "an event of this kind")


def _replay_of(event: DumpedEvent, rules: DumpRules) -> _Replay | None:
    if event.type in _DISPENSABLE and event.type in rules.passed_kinds:
        return None
    return _REPLAYS.get(event.type)


def _table_changes(reader: DumpReader, event: DumpedEvent) -> tuple[tuple[str, ObjectChange], ...]:
    if event.type == DumpType.CREATE_TABLE.value:
        return ((reader.event_table(event).table.name, ObjectChange.CREATED),)
    if event.type == DumpType.DROP_TABLE.value:
        payload = event.read(Payload)
        return ((checked_name(payload.text("table"), "table"), ObjectChange.GONE),)
    if event.type == DumpType.RENAME_DROP_TABLE.value:
        before = event.read(Payload).table("tableObjBeforeJson")
        return ((checked_name(before.name, "table"), ObjectChange.GONE),)
    if event.type == DumpType.RENAME_TABLE.value:
        before, after = event.read(Payload).altered_tables()
        return (
            (checked_name(before.name, "table"), ObjectChange.GONE),
            (checked_name(after.name, "table"), ObjectChange.CREATED),
        )
    return _partition_changes(reader, event)


def _partition_changes(
    reader: DumpReader, event: DumpedEvent
) -> tuple[tuple[str, ObjectChange], ...]:
    if event.type == DumpType.ADD_PARTITION.value:
        dumped = reader.event_table(event)
        return tuple(
            (
                partition_key(dumped.table.name, parse_partition_name(part.name)),
                ObjectChange.CREATED,
            )
            for part in dumped.partitions
        )
    if event.type == DumpType.DROP_PARTITION.value:
        payload = event.read(Payload)
        name = checked_name(payload.text("table"), "table")
        return tuple(
            (partition_key(name, values.items()), ObjectChange.GONE)
            for values in payload.objects("partitions")
        )
    if event.type == DumpType.RENAME_PARTITION.value:
        payload = event.read(Payload)
        changed = payload.table()
        columns = [column.name for column in changed.partition_columns]
        keys = (
            partition_key(changed.name, zip(columns, payload.partition(key).values, strict=True))
            for key in ("partitionObjBeforeJson", "partitionObjAfterJson")
        )
        return tuple(zip(keys, (ObjectChange.RENAMED, ObjectChange.CREATED), strict=True))
    return ()


def _txn_step(event: DumpedEvent, source: str) -> TxnStep | None:
    if event.type == DumpType.OPEN_TXN.value:
        opened = event.read(OpenTxnPayload)
        return TxnStep(event_id=event.id, opened=opened.txn_ids)
    if event.type == DumpType.ALLOC_WRITE_ID.value:
        allocated = event.read(AllocWriteIdPayload)
        is_ours = allocated.database_name == source
        txn_ids = tuple(pair.txn_id for pair in allocated.allocated)
        return TxnStep(event_id=event.id, touched=txn_ids if is_ours else ())
    if event.type == DumpType.COMMIT_TXN.value:
        committed = event.read(CommitTxnPayload)
        is_ours = any(write.target.database == source for write in committed.writes or ())
        touched = (committed.txn_id,) if is_ours else ()
        return TxnStep(event_id=event.id, ended=committed.txn_id, touched=touched)
    if event.type == DumpType.ABORT_TXN.value:
        aborted = event.read(AbortTxnPayload)
        return TxnStep(event_id=event.id, ended=aborted.txn_id)
    return None


def replay(
    reader: DumpReader,
    replica: Replica,
    plan: IncrementalPlan,
    weights: Mapping[EventId, int] | None = None,
) -> None:
    """Apply the events after the replica's own. Stopped anywhere, it goes on from there.

    ``weights``: the bytes that events bring. A stop leaves ``repl.last.id`` at an event up to which
    everything is applied whole; what was applied beyond it is not seen, or is repeated without
    harm.
    """
    context = ReplayContext(reader=reader, replica=replica, changes=plan.changes)
    replica.end_replays(plan.unrelated)
    pending = _pending(reader, replica.recorded)
    for window in windows_of(pending, partial(_is_together, plan, reader.rules), weights or {}):
        go_ahead(context, [event for event in window if event.id not in plan.left_out])
        _replay_window(context, plan, window)


def _replay_window(
    context: ReplayContext, plan: IncrementalPlan, window: Sequence[DumpedEvent]
) -> None:
    """Commits that were prepared go together, up to an event that does more than begin a write."""
    commits = commit.PendingCommits(context.replica)
    try:
        for event in window:
            if event.id in context.ahead.copied and event.id in context.ahead.commits:
                context.replica.check_lease()
                commits.add(event, commit.commit_request(context, event))
                continue
            is_done = event.id in plan.left_out or event.type in _BEGINNING
            if not is_done and _replay_of(event, context.reader.rules) is not None:
                commits.send()
            _replay_one(context, plan, event)
    except Exception:
        commits.send()  # what comes before an event that is refused is loaded
        raise
    commits.send()


def _is_together(plan: IncrementalPlan, rules: DumpRules, event: DumpedEvent) -> bool:
    """Whether commits after an event may be brought before it."""
    if event.type in _OF_TXNS or event.id in plan.left_out or event.id in plan.counts_alone:
        return True
    return _replay_of(event, rules) is None


def _replay_one(context: ReplayContext, plan: IncrementalPlan, event: DumpedEvent) -> None:
    replica = context.replica
    replica.check_lease()
    is_left_out = event.id in plan.left_out
    replay_one = None if is_left_out else _replay_of(event, context.reader.rules)
    if replay_one is not None:
        if event.type in _RECORDED_AT_ONCE:
            replica.record()
        replay_one(context, event)
    # A commit may have moved it already.
    if event.id > replica.recorded:
        replica.reached(event.id)
    if event.type in _RECORDED_AT_ONCE:
        replica.record()


def _pending(reader: DumpReader, after: EventId) -> Iterator[DumpedEvent]:
    return (event for event in reader.events() if event.id > after)
