"""What both sides of a policy show before a replica takes its source's place. Changes nothing."""

from __future__ import annotations

from hms_bridge.errors import EventGapError
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import EventId
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.replication import ReplicationPolicy
from hms_bridge.repl.dump.backlog import find_backlog
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.origin import require_reached
from hms_bridge.repl.dump.snapshot_wait import try_snapshot
from hms_bridge.repl.dump.tables import transactional_names
from hms_bridge.repl.format.directories import DumpDirectory, DumpState, list_dumps
from hms_bridge.repl.format.scope_note import read_scope_note
from hms_bridge.repl.handover.own_part import open_replays, open_writers
from hms_bridge.repl.handover.promote_plan import ReplicaState, SourceState
from hms_bridge.repl.handover.record import Handover
from hms_bridge.repl.handover.sides import Side
from hms_bridge.repl.remedies import without_remedy
from hms_bridge.repl.target_objects import (
    BEGUN,
    diverged_tables,
    noted_scope,
)


def look_at_source(side: Side, stands_at: EventId | None) -> SourceState:
    """The source, as its replica's event says what is behind. Raises NoSuchObjectError."""
    database = side.database()
    _, in_the_way = try_snapshot(
        side.metastore, side.database_name, transactional_names(side.tables())
    )
    backlog, gap = None, ""
    if stands_at is not None:
        try:
            until = side.metastore.get_current_event_id()
            require_reached(until, stands_at, side.database_name)
            later = EventRange(after=stands_at, until=until)
            backlog = find_backlog(side.metastore, later, side.all_tables)
        except EventGapError as error:
            gap = without_remedy(str(error))
    return SourceState(
        database=database,
        backlog=backlog,
        gap=gap,
        writers=open_writers(side.metastore, side.database_name),
        in_the_way="" if in_the_way is None else in_the_way.text,
    )


def look_at_replica(side: Side, policy: ReplicationPolicy) -> ReplicaState:
    """The replica, and the dumps on their way to it. Raises NoSuchObjectError, ReplError, OSError
    where they are out of reach."""
    database = side.database()
    waiting: str | None = None
    waiting_scope: ReplScope | None = None
    half_dropped: ReplScope | None = None
    half_brought: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    if Handover.of(database) is None:
        # Marked and damaged ones, too: what they bring is lacking, but a failover may do without.
        newest = next(
            (
                dump
                for dump in list_dumps(side.resolve, policy.root, policy.source.database)
                if dump.metadata is not None or dump.state is DumpState.DAMAGED
            ),
            None,
        )
        if newest is not None and newest.state is not DumpState.LOADED:
            waiting = newest.paths.root
            waiting_scope = _changed_scope(newest, database, policy.source.database)
        diverged, tables = diverged_tables(database), side.tables()
        if newest is not None and waiting_scope is not None:
            going = _going(side, newest, waiting_scope)
            half_dropped = waiting_scope if going - {table.name for table in tables} else None
        half_brought = tuple(
            table.name for table in tables if BEGUN in table.parameters or table.name in diverged
        )
        missing = tuple(sorted(diverged.difference(table.name for table in tables)))
    return ReplicaState(
        database=database,
        replays=open_replays(side.metastore, side.database_name),
        half_brought=half_brought,
        missing=missing,
        waiting=waiting,
        waiting_scope=waiting_scope,
        half_dropped=half_dropped,
    )


def _going(side: Side, waiting: DumpDirectory, scope: ReplScope) -> frozenset[str]:
    """Tables that a load drops because of the scope."""
    note = read_scope_note(side.resolve, waiting.paths, scope)
    return frozenset(name for name in note.names if not scope.contains(name))


def _changed_scope(waiting: DumpDirectory, replica: Database, source: str) -> ReplScope | None:
    """The tables that a dump is of, where the replica has others of its source's, and not all would
    stay."""
    scope = waiting.scope
    noted = noted_scope(replica.parameters, source)
    if scope is None or scope.is_whole_database or noted is None:
        return None
    return scope if scope.patterns_text != noted.patterns_text else None
