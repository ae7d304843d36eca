"""A source's database that was dropped: its last dump says nothing but that.

Whatever came before is gone with it. Hive reports a drop only of a database that was made anew
since, and its load drops the replica unasked (docs/hive/replication.md §32).
"""

from __future__ import annotations

from changemanager.location import Resolver
from hms_bridge.errors import EventGapError, ReplError
from hms_bridge.metadata_store import NotificationStore
from hms_bridge.metastore import Metastore
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.event_source import EventRange, is_of, read_events
from hms_bridge.repl.dump.origin import require_same_log, write_origin
from hms_bridge.repl.dump.plan import (
    DumpKind,
    DumpPlan,
    DumpReport,
    DumpRequest,
    EventCounts,
    blocked_by,
)
from hms_bridge.repl.dump.scope_change import scope_of
from hms_bridge.repl.format.directories import DumpDirectory, DumpState, list_dumps, newest_finished
from hms_bridge.repl.format.dump_metadata import DumpMetadata, DumpType
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.events_dump import EventsDump
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.replays import Replays
from hms_bridge.repl.format.scope_note import read_scope_note
from hms_bridge.repl.format.texts import compact_json, is_there
from hms_bridge.repl.lookup import if_there

_COUNTS = EventCounts(dumped={DumpType.DROP_DATABASE.value: 1})


def is_drop_loaded(resolve: Resolver, previous: DumpDirectory) -> bool:
    """Whether the last dump was of a drop, which the replica has."""
    return previous.state is DumpState.LOADED and is_there(resolve(previous.paths.dropped))


def plan_dropped(
    source: NotificationStore, resolve: Resolver, request: DumpRequest
) -> DumpPlan | None:
    """What is to be dumped of a database that is not there; None if nothing says that it was
    dropped since its last dump. Raises ReplError for what a person must look at."""
    name = request.database_name
    dumps = list_dumps(resolve, request.root, name)
    previous = newest_finished(dumps)
    if previous is None or previous.metadata is None:
        return None
    if request.is_bootstrap_forced or request.is_apart or request.anew:
        return None
    after = previous.metadata.last_event_id
    if is_there(resolve(previous.paths.dropped)):
        return _known_already(request, previous, after)
    is_waiting = previous.state is DumpState.FINISHED
    scope = scope_of(previous, name)
    if is_waiting:
        # What the replica has, where that dump changes it.
        scope = read_scope_note(resolve, previous.paths, scope).before
        # Its files may have gone with the database, and nobody needs them any more.
        after = previous.metadata.from_event_id
    wanted = EventRange(after=after, until=source.get_current_event_id())
    try:
        require_same_log(source, resolve, previous, wanted)
        event = _drop_event(source, name, wanted)
    except EventGapError:
        return None
    if event is None:
        return None
    if is_waiting and previous.metadata.type != DumpType.INCREMENTAL.value:
        return blocked_by(request, previous.paths.root)
    older = () if request.is_previous_kept else tuple(dump.paths.root for dump in dumps)
    replaced = (previous.paths.root,) if is_waiting else ()
    return DumpPlan(
        kind=DumpKind.DROP,
        request=request,
        reason=f"the database was dropped by event {event.id}",
        previous=previous.paths.root,
        after_event_id=after,
        until_event_id=event.id,
        events=_COUNTS,
        removed=older or replaced,
        scope=scope,
    )


def _known_already(request: DumpRequest, previous: DumpDirectory, dropped_at: EventId) -> DumpPlan:
    if previous.state is DumpState.FINISHED:
        return blocked_by(request, previous.paths.root)
    return DumpPlan(
        kind=DumpKind.NOTHING,
        request=request,
        reason=f"the database was dropped by event {dropped_at}, and the replica knows it",
        previous=previous.paths.root,
        after_event_id=dropped_at,
        until_event_id=dropped_at,
    )


def write_dropped(source: Metastore, texts: NotedTexts, plan: DumpPlan) -> DumpReport:
    """Write the one event. Raises ReplError if the database is there again."""
    request, paths = plan.request, texts.paths
    name = request.database_name
    after, until = plan.wanted.after, plan.wanted.until
    event = _drop_event(source, name, plan.wanted)
    is_back = if_there(source.get_database, name) is not None
    if event is None or event.id != until or is_back:
        raise ReplError(f"database {name} is there again since the plan; plan the dump again")
    batch = None if request.events.batch_size is None else 1
    payload = Payload.of(event)
    metadata = DumpMetadata(
        type=DumpType.DROP_DATABASE.value,
        from_event_id=event.id,
        to_event_id=event.id,
        cm_root=request.cm_root,
        payload=compact_json(payload.fields),
    )
    previous = None if plan.previous is None else DumpPaths(plan.previous)
    before = Replays() if previous is None else Replays.read(texts.resolve, previous)
    progress = EventsDump(last_event_id=until, event_count=1, is_batched=batch is not None)
    write_origin(source, texts, after, until)
    texts.write(
        {
            paths.event(int(event.id), batch).dump_metadata: metadata.format(),
            paths.dropped: f"{name}\n",
            paths.open_txns: "\n",
            # Nobody goes on with them.
            paths.replays: Replays(ended=before.all).format(),
            paths.events_dump: progress.format(),
        }
    )
    texts.write_metadata(DumpType.INCREMENTAL, plan.scope_now, request.cm_root, after, until)
    return DumpReport(
        kind=plan.kind,
        reason=plan.reason,
        directory=paths.root,
        from_event_id=after,
        to_event_id=until,
        last_event_id=until,
        events=_COUNTS,
        removed=plan.removed,
    )


def _drop_event(
    source: NotificationStore, database: str, wanted: EventRange
) -> NotificationEvent | None:
    """The last drop of a database in a range."""
    dropped = [
        event
        for event in read_events(source, wanted)
        if event.type == EventType.DROP_DATABASE.value and is_of(event, database)
    ]
    return dropped[-1] if dropped else None
