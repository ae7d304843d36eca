"""Whether the target of a load is the very database that the dump was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from changemanager.location import Location, Resolver, is_within, parse_uri
from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database, Table
from hms_bridge.model.properties import CHECKPOINT
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.target_objects import last_event_of

METASTORE_HINT = "did you forget --metastore of the replica?"
"""What to ask where a dump may be on the wrong side."""


def is_unloaded_source(database: Database | None) -> bool:
    """Whether dumps are made of the database, and none was ever loaded into it."""
    if database is None or not database.is_replication_source:
        return False
    return last_event_of(database.parameters) is None and CHECKPOINT not in database.parameters


def refuse_own_source(
    directory: str,
    database: Database,
    dumped: Iterable[Table],
    find_table: Callable[[str], Table | None],
    resolve: Resolver,
) -> None:
    """Raises ReplError if the target is, as far as anything shows, where the dump comes from.

    So it is if it is marked as a replication source and no dump was loaded into it, or if a table
    lies where the one of the same name in the dump does. External ones do not count: both sides
    may look at the same files.
    """
    if is_unloaded_source(database):
        raise own_source(directory, database.name)
    for source in dumped:
        table = None if source.is_external else find_table(source.name)
        if table is not None and is_same_place(table, source, resolve):
            raise own_source(directory, database.name)


def own_source(directory: str, database_name: str) -> ReplError:
    """The refusal; it never advises to drop what may be the only copy."""
    return ReplError(
        f"database {database_name} of this metastore looks like the one that {directory} was made "
        f"from; {METASTORE_HINT} Nothing was changed. Only if the dump is of a former replica that "
        f"has taken its place: 'repl end {database_name}' ends its part as a source"
    )


def is_same_place(table: Table, source: Table, resolve: Resolver) -> bool:
    """Whether a table lies where another one does, or one in the other; links are followed."""
    place, other = table.storage.location, source.storage.location
    if not place or not other:
        return False
    here, there = parse_uri(place), parse_uri(other)
    if here.file_system != there.file_system:
        return False
    # Two names of one directory, by a link, are one table: a load would replace its own source.
    first, second = (_real_path(resolve(parsed.uri)) for parsed in (here, there))
    return is_within(first, second) or is_within(second, first)


def _real_path(place: Location) -> str:
    return place.volume.real_path(place.path)


def tables_of_events(reader: DumpReader) -> Iterator[Table]:
    """The source's tables, as the events that write to them or make them name them."""
    for event in reader.events():
        if event.type == DumpType.COMMIT_TXN.value:
            yield from (dumped.table for dumped in reader.commit_tables(event))
        elif event.type == DumpType.CREATE_TABLE.value:
            yield reader.event_table(event).table
