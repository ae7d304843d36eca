"""What a former source and its successor show before the way back. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hms_bridge.errors import EventGapError
from hms_bridge.model.catalog import Database, TableType
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.event_source import EventRange, read_events
from hms_bridge.repl.dump.origin import require_reached, require_same_log
from hms_bridge.repl.dump.plain_tables import plain_places, read_plain
from hms_bridge.repl.dump.tables_anew import names_of_event
from hms_bridge.repl.format.directories import list_dumps
from hms_bridge.repl.handover.divergence import (
    Divergence,
    changed_places,
    find_divergence,
    functions_apart,
)
from hms_bridge.repl.handover.failback_plan import NewSource, OldSource
from hms_bridge.repl.handover.own_part import open_writers
from hms_bridge.repl.handover.record import Handover
from hms_bridge.repl.handover.sides import Side
from hms_bridge.repl.remedies import without_remedy
from hms_bridge.repl.target_objects import (
    is_replica,
    last_event_of,
)


def look_at_old_source(side: Side, database: Database, handover: Handover, root: str) -> OldSource:
    """What a former source has beyond the handover, and who is still at work there. ``root``: where
    its dumps are."""
    tables = side.tables()
    divergence = Divergence()
    if not is_replica(database.parameters):
        divergence = _divergence(side, handover, root)
    return OldSource(
        database=database,
        tables={table.name: last_event_of(table.parameters) for table in tables},
        divergence=divergence,
        writers=open_writers(side.metastore, side.database_name),
        views={
            table.name: (table.view_original_text or table.view_expanded_text or "").strip()
            for table in tables
            if table.is_materialized_view
        },
        foreign_views=_foreign_views(side),
    )


def _foreign_views(side: Side) -> dict[str, frozenset[str]]:
    """Materialized views of other databases, with the tables of this one that they read."""
    store, own = side.metastore, side.database_name.lower()
    views = dict[str, frozenset[str]]()
    for database in store.get_databases():
        names = store.get_tables(database, table_type=TableType.MATERIALIZED_VIEW.value)
        if database == own or not names:
            continue
        for view in store.get_tables_by_names(database, names):
            read = frozenset[str]() if view.creation is None else view.creation.table_names
            views[view.full_name] = frozenset(
                name.partition(".")[2] for name in read if name.partition(".")[0] == own
            )
    return views


def may_differ_unseen(former: Database, divergence: Divergence, handover: Handover) -> bool:
    """Whether a former source may differ from the new one in ways that no event shows."""
    is_covered = handover.is_pure and not divergence.unknown
    return not is_covered and not is_replica(former.parameters)


def other_functions(old: Side, new: Side, handover: Handover) -> tuple[str, ...]:
    """Those that differ, without what the new source has done since the handover. Raises
    EventGapError."""
    until = new.metastore.get_current_event_id()
    later = EventRange(after=handover.own_event or EventId(0), until=until)
    names = old.database_name, new.database_name
    return functions_apart(old.metastore, new.metastore, names, later)


def look_at_new_source(
    side: Side, database: Database, own_event: EventId, names: Collection[str]
) -> NewSource:
    """Which of some names a promoted replica has, or had since. Raises EventGapError."""
    tables = frozenset(side.metastore.get_tables(side.database_name))
    unknown = set(names) - tables
    if unknown:
        until = side.metastore.get_current_event_id()
        for event in read_events(side.metastore, EventRange(after=own_event, until=until)):
            unknown -= names_of_event(event, side.database_name)
    return NewSource(database=database, tables=tables, known=tables | (frozenset(names) - unknown))


def _divergence(side: Side, handover: Handover, root: str) -> Divergence:
    store = side.metastore
    until = store.get_current_event_id()
    later = EventRange(after=handover.source_event, until=until)
    dumps = list_dumps(side.resolve, root, side.database_name)
    last = next((dump for dump in dumps if dump.paths.root == handover.last_dump), None)
    try:
        require_reached(until, handover.source_event, side.database_name)
        if last is not None:
            require_same_log(store, side.resolve, last, later)
    except EventGapError as error:
        return Divergence(unknown=without_remedy(str(error)))
    divergence = find_divergence(store, later, side.database_name)
    before = {} if last is None else read_plain(side.resolve, last.paths)
    changed = changed_places(before, plain_places(store, side.resolve, side.tables()))
    unseen = changed - divergence.lost.keys()
    return replace(divergence, lost={**divergence.lost, **dict.fromkeys(unseen, 1)})
