"""Write a whole database as a bootstrap dump."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from changemanager.uri import EncodedUri
from hms_bridge.errors import NoSuchObjectError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import EventType
from hms_bridge.model.ids import EventId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.properties import LAST_EVENT
from hms_bridge.repl.dump.event_source import EventRange, is_of, read_events
from hms_bridge.repl.dump.external import (
    external_directories,
    external_list_text,
    partitions_of,
)
from hms_bridge.repl.dump.snapshot_wait import DatabaseSnapshot
from hms_bridge.repl.dump.table_files import snapshot_files
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.external_list import ExternalDirectory
from hms_bridge.repl.format.files_list import format_files
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.object_metadata import (
    SCOPE_ALL,
    SCOPE_METADATA,
    DatabaseMetadata,
    ReplicationSpec,
    TableMetadata,
)
from hms_bridge.repl.format.stored_message import event_text
from hms_bridge.repl.lookup import if_there
from hms_bridge.repl.target_objects import (
    owned_database,
    replicated_parameters,
)
from hms_bridge.wire.object_json import (
    database_to_json,
    partition_to_json,
    table_to_json,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A directory of a table or of its partition ``name``; ``location`` None: without files.
    ``files``: what it holds at the snapshot. ``error``: why that, or which partitions the table
    has, could not be found out."""

    table: Table
    partitions: tuple[Partition, ...] = ()
    name: str | None = None
    location: str | None = None
    files: tuple[EncodedUri, ...] = ()
    error: Exception | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeTable:
    """A table of which everything was found, and the files that are named for it."""

    table: Table
    partitions: tuple[Partition, ...]
    files: tuple[EncodedUri, ...]


class BootstrapDump:
    """Writes the objects and file lists of a database at one snapshot."""

    def __init__(
        self,
        source: Metastore,
        paths: DumpPaths,
        texts: NotedTexts,
        *,
        event_id: EventId,
        snapshot: DatabaseSnapshot,
        cm_root: str | None,
        external_base: str | None,
    ) -> None:
        self._source = source
        self._resolve = texts.resolve
        self._paths = paths
        self._texts = texts
        self._event_id = event_id
        self._snapshot = snapshot
        self._cm_root = cm_root
        self._external_base = external_base
        self._external: list[ExternalDirectory] = []

    def write_tables(self, tables: tuple[Table, ...]) -> Iterator[WholeTable]:
        """Each table with its partitions and files.

        A table that is dropped meanwhile is left out: the drop is an event of the next dump.
        """
        with FilePool() as pool:
            places = pool.each(self._write_files, self._places(tables))
            for _, of_table in groupby(places, key=lambda place: place.table.name):
                whole = self._joined(tuple(of_table))
                if whole is not None:
                    pool.begin(self._write_metadata, whole)
                    yield whole
            pool.finish()

    def write_external_list(self) -> None:
        """Directories of external tables, if their data is to be copied."""
        self._texts.write(external_list_text(self._paths, self._external))

    def _is_same_table(self, table: Table) -> bool:
        now = if_there(self._source.get_table, table.database_name, table.name)
        return now is not None and (now.id, now.create_time) == (table.id, table.create_time)

    def _places(self, tables: tuple[Table, ...]) -> Iterator[_Place]:
        """Every directory to look into, at least one for each table; also where there is none."""
        for table in tables:
            if table.is_materialized_view:
                continue
            try:
                partitions = partitions_of(self._source, table)
            except NoSuchObjectError as error:
                yield _Place(table=table, error=error)
                continue
            has_files = not table.is_view and not table.is_external
            own = table.storage.location if has_files and not table.is_partitioned else None
            yield _Place(table=table, partitions=partitions, location=own)
            for partition in partitions if has_files else ():
                name = partition_name(table.partition_columns, partition.values)
                yield _Place(
                    table=table,
                    partitions=partitions,
                    name=name,
                    location=partition.storage.location,
                )

    def _write_files(self, place: _Place) -> _Place:
        """The file list of one directory. What vanished may belong to a dropped table."""
        table = place.table
        if place.location is None:
            return place
        snapshot = self._snapshot.of_table(self._source, table)
        try:
            files = snapshot_files(self._resolve(place.location), snapshot, self._cm_root)
        except FileNotFoundError as error:
            return replace(place, error=error)
        path = self._paths.table_files(table.database_name, table.name, place.name)
        self._texts.write({path: format_files(files)})
        return replace(place, files=files)

    def _joined(self, places: tuple[_Place, ...]) -> WholeTable | None:
        """None for a table that was dropped, or made anew, since it was listed."""
        table, partitions = places[0].table, places[0].partitions
        error = next((place.error for place in places if place.error is not None), None)
        if not self._is_same_table(table):
            return None
        if error is not None:
            raise error
        if table.is_external and self._external_base is not None:
            self._external += external_directories(
                self._resolve, table, partitions, self._external_base
            )
        files = tuple(file for place in places for file in place.files)
        return WholeTable(table=table, partitions=partitions, files=files)

    def _write_metadata(self, whole: WholeTable) -> None:
        table = whole.table
        write_ids = self._snapshot.write_ids.get(table.full_name)
        spec = ReplicationSpec(
            scope=SCOPE_METADATA if table.is_view else SCOPE_ALL,
            last_event_id=self._event_id,
            is_replace=True,
            valid_write_ids=None if write_ids is None else write_ids.format(),
            valid_txns=None if write_ids is None else self._snapshot.txns.format(),
        )
        metadata = TableMetadata(
            spec=spec,
            table=table_to_json(replace(table, parameters=self._parameters(table.parameters))),
            partitions=tuple(
                partition_to_json(
                    replace(partition, parameters=self._parameters(partition.parameters))
                )
                for partition in whole.partitions
            ),
        )
        path = self._paths.table_metadata(table.database_name, table.name)
        self._texts.write({path: metadata.format()})

    def _parameters(self, parameters: Mapping[str, str]) -> dict[str, str]:
        return replicated_parameters(parameters) | {LAST_EVENT: str(self._event_id)}


def write_database(source: Metastore, texts: NotedTexts, name: str, event_id: EventId) -> None:
    """The database object of a bootstrap dump."""
    database = source.get_database(name)
    parameters = replicated_parameters(database.parameters)
    parameters |= {
        "hive.repl.is.custom.db.loc": "false",
        "hive.repl.is.custom.db.managedloc": "false",
        LAST_EVENT: str(event_id),
    }
    text = database_to_json(owned_database(replace(database, parameters=parameters)))
    path = texts.paths.database_metadata(name)
    texts.write({path: DatabaseMetadata(database=text).format()})


def require_no_rename(source: Metastore, database: str, wanted: EventRange) -> None:
    """Raises ReplError if a table or partition was renamed while it was dumped.

    A drop and a new object of the same name are healed by their events; a renamed object may have
    been missed under both names.
    """
    for event in read_events(source, wanted):
        if not is_of(event, database):
            continue
        is_renamed = False
        if event.type == EventType.ALTER_TABLE.value:
            before, after = Payload.of(event).altered_tables()
            is_renamed = before.name != after.name
        elif event.type == EventType.ALTER_PARTITION.value:
            altered = Payload.of(event).altered_partitions()
            is_renamed = altered is not None and altered[0].values != altered[1].values
        if is_renamed:
            raise ReplError(
                f"{event_text(event)}: a table or partition was renamed while database {database} "
                "was dumped, and may be missing; dump again"
            )
