"""What both sides of a policy show before one takes the other's place. Changes nothing."""

from __future__ import annotations

from hms_bridge.errors import EventGapError
from hms_bridge.model.ids import EventId
from hms_bridge.model.replication import ReplicationPolicy
from hms_bridge.repl.dump.backlog import find_backlog
from hms_bridge.repl.dump.event_source import EventRange
from hms_bridge.repl.dump.origin import require_reached
from hms_bridge.repl.dump.snapshot_wait import try_snapshot
from hms_bridge.repl.dump.tables import transactional_names
from hms_bridge.repl.format.directories import DumpState, list_dumps, newest_finished
from hms_bridge.repl.handover.promote_plan import ReplicaState, SourceState
from hms_bridge.repl.handover.record import Handover
from hms_bridge.repl.handover.sides import Side
from hms_bridge.repl.own_part import open_replays, open_writers
from hms_bridge.repl.target_objects import BEGUN


def look_at_source(side: Side, stands_at: EventId | None) -> SourceState:
    """The source, as its replica's event tells what is behind. Raises NoSuchObjectError."""
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
            backlog = find_backlog(side.metastore, later, side.database_name)
        except EventGapError as error:
            gap = str(error)
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
    if Handover.of(database) is not None:
        waiting, half_brought = None, ()
    else:
        newest = newest_finished(list_dumps(side.resolve, policy.root, policy.source.database))
        is_waiting = newest is not None and newest.state is DumpState.FINISHED
        waiting = newest.paths.root if newest is not None and is_waiting else None
        half_brought = tuple(table.name for table in side.tables() if BEGUN in table.parameters)
    return ReplicaState(
        database=database,
        replays=open_replays(side.metastore, side.database_name),
        half_brought=half_brought,
        waiting=waiting,
    )
