"""Tables that an incremental dump brings whole, instead of their events.

What no sequence of events can carry (a rebalance, a conversion, a write that nobody can find) need
not be carried for the whole database: the events of such a table are left out, the table is written
as in a bootstrap, at a snapshot after the last event, and a load puts it in the place of what the
replica has (Hive: LoadTable.getLoadTableType, isBootstrapDuringInc; docs/hive/replication.md §25).

Names that a rename of the range ties to such a table go with it: under each of them the replica may
have the rows of another one. A name that the source does not have any more is dropped there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from changemanager.location import Resolver
from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.repl.dump.event_source import EventRange, foreign_keys, is_of, read_events
from hms_bridge.repl.format.directories import DumpDirectory, DumpState
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.event_payload import AllocWriteIdPayload, Payload
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.side_texts import parse_table_names
from hms_bridge.repl.format.texts import read_text_if_there
from hms_bridge.repl.lookup import if_there

_TEXT_BYTES_MAX = 16 << 20
PlaceT = TypeVar("PlaceT")


def is_replaceable(dump: DumpDirectory) -> bool:
    """Whether another dump may be made in the place of one that is not loaded."""
    metadata = dump.metadata
    return (
        dump.state is DumpState.FINISHED
        and metadata is not None
        and metadata.type == DumpType.INCREMENTAL.value
    )


def linked_names(
    source: Metastore, database: str, wanted: EventRange, names: Iterable[str]
) -> frozenset[str]:
    """The names, and those that renames in a range tie to them."""
    all_names = set(names)
    if not all_names:
        return frozenset()
    renames = [
        pair
        for event in read_events(source, wanted)
        if event.type == EventType.ALTER_TABLE.value and is_of(event, database)
        for pair in [names_of_event(event, database)]
        if len(pair) > 1
    ]
    while True:
        linked = {name for pair in renames if pair & all_names for name in pair}
        if linked <= all_names:
            return frozenset(all_names)
        all_names |= linked


def names_of_event(event: NotificationEvent, database: str) -> frozenset[str]:
    """Names of tables of the database that an event is of; a rename is of two."""
    if event.type == EventType.ALTER_TABLE.value:
        tables = Payload.of(event).altered_tables()
        return frozenset(table.name for table in tables if table.database_name == database)
    if event.type == EventType.ALLOC_WRITE_ID.value:
        allocated = AllocWriteIdPayload.of(event)
        return frozenset([allocated.table_name] if allocated.database_name == database else [])
    if event.type == EventType.ADD_FOREIGN_KEY.value:
        added = (of_table for of_table in foreign_keys(event) if of_table.database_name == database)
        return frozenset(of_table.table_name for of_table in added)
    if not is_of(event, database) or not event.table_name:
        return frozenset()
    return frozenset([event.table_name.lower()])


def require_known_names(
    source: Metastore, database: str, wanted: EventRange, names: Collection[str]
) -> None:
    """Raises ReplError for a name that the source neither has nor had in a range."""
    unknown = {name for name in names if if_there(source.get_table, database, name) is None}
    if not unknown:
        return
    for event in read_events(source, wanted):
        unknown -= names_of_event(event, database)
    if unknown:
        raise ReplError(
            f"database {database} has no table {', '.join(sorted(unknown))}, and no event since "
            "the last load tells of one; nothing to bring anew"
        )


def without_tables(places: Mapping[str, PlaceT], names: Collection[str]) -> dict[str, PlaceT]:
    """Places by ``table`` or ``table/partition`` without those of some tables."""
    return {key: place for key, place in places.items() if key.partition("/")[0] not in names}


def read_names(resolve: Resolver, paths: DumpPaths) -> frozenset[str]:
    """What another dump of the same place brings anew."""
    text = read_text_if_there(resolve(paths.names_anew), _TEXT_BYTES_MAX)
    return parse_table_names(text, paths.names_anew)
