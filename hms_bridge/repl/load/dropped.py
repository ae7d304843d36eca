"""A database that its source dropped: the replica goes only if somebody says so.

Only what loads alone have made goes, and only at the event that the dump names.
"""

from __future__ import annotations

from changemanager.location import Resolver
from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.directories import DumpState
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.reader import DumpedEvent, DumpReader
from hms_bridge.repl.format.texts import is_there
from hms_bridge.repl.load.plan import LoadKind, LoadPlan, LoadRequest
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.target_objects import is_of_loads_only

SETTING = "hms.bridge.repl.load.drop.database"


def drop_event(reader: DumpReader) -> DumpedEvent | None:
    """The event with which a dump ends, if that is the drop of the database. One that others follow
    is refused as events are replayed: they are of another database of the name."""
    if reader.is_bootstrap or reader.names_anew:
        return None
    last = reader.last_event()
    return last if last is not None and last.type == DumpType.DROP_DATABASE.value else None


def is_dropped_already(
    resolve: Resolver, reader: DumpReader, state: DumpState, database: Database | None
) -> bool:
    """Whether a dump is of a drop, and was loaded here."""
    is_loaded = state is DumpState.LOADED and database is None
    return is_loaded and is_there(resolve(reader.paths.dropped))


def plan_drop(
    request: LoadRequest,
    reader: DumpReader,
    event: DumpedEvent,
    database: Database | None,
    stands_at: EventId | None,
) -> LoadPlan:
    """Raises ReplError unless the drop is allowed, and everything in the replica is of loads."""
    target = request.names.target_database
    if not request.is_drop_allowed:
        raise ReplError(
            f"{event.where}: the source has dropped {reader.source_database}. A replica is not "
            f"dropped unasked: to drop {target} with all that it holds, 'repl load "
            f"{reader.source_database} --allow-drop-database' (for a policy: {SETTING} of its "
            f"target); to keep it as a database of its own, 'repl end {target}' at the replica"
        )
    if database is not None and (stands_at or EventId(0)) > event.id:
        raise ReplError(
            f"{event.where}: database {target} stands at event {stands_at}, beyond the drop, so it "
            "is the replica of a later database; nothing was dropped. Look at --root and --into"
        )
    if database is not None and not is_of_loads_only(database.parameters):
        raise ReplError(
            f"{event.where}: others than loads could change database {target} ('repl open', or a "
            "Hive's load), so it may hold what the source never had; nothing was dropped. Look "
            f"what it holds, then 'sql -e \"DROP DATABASE {target} CASCADE\"', and load again"
        )
    return LoadPlan(
        kind=LoadKind.DROP,
        request=request,
        reason=f"the source dropped the database by event {event.id}"
        if database is not None
        else f"database {target} is not there any more; the marks are written now",
        directory=reader.paths.root,
        stands_at=stands_at,
        last_event_id=event.id,
        events={event.type: 1},
    )


def run_drop(replica: Replica) -> None:
    """Drop the replica with its files; nothing if it is gone. Its replays go with it. Raises
    ReplError where others could change it since the plan."""
    database = replica.find_database()
    if database is None:
        return
    if not is_of_loads_only(database.parameters):
        raise ReplError(
            f"database {database.name} was opened to others since the plan; plan the load again"
        )
    replica.metastore.drop_database(database.name, is_cascade=True)
