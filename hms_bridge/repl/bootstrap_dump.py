"""Write a whole database as a bootstrap dump."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from changemanager.location import Resolver
from changemanager.uri import EncodedUri
from hms_bridge.errors import NoSuchObjectError, ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table, TableType
from hms_bridge.model.event import EventType
from hms_bridge.model.ids import EventId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.repl.event_payload import Payload, message_json
from hms_bridge.repl.event_source import EventRange, read_events
from hms_bridge.repl.external_dump import (
    external_directories,
    partitions_of,
    write_external_list,
)
from hms_bridge.repl.external_list import ExternalDirectory
from hms_bridge.repl.files_list import format_files
from hms_bridge.repl.layout import DumpPaths
from hms_bridge.repl.object_metadata import (
    SCOPE_ALL,
    SCOPE_METADATA,
    DatabaseMetadata,
    ReplicationSpec,
    TableMetadata,
)
from hms_bridge.repl.snapshot_wait import DatabaseSnapshot
from hms_bridge.repl.table_files import TableSnapshot, snapshot_files
from hms_bridge.repl.target_objects import (
    LAST_EVENT,
    is_external,
    is_view,
    owned_database,
    replicated_parameters,
)
from hms_bridge.repl.texts import write_text
from hms_bridge.wire.object_json import (
    database_to_json,
    partition_from_json,
    partition_to_json,
    table_from_json,
    table_to_json,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TableFiles:
    """What was dumped of one table."""

    table_name: str
    partition_count: int
    files: tuple[EncodedUri, ...]


class BootstrapDump:
    """Writes the objects and file lists of a database at one snapshot."""

    def __init__(
        self,
        source: Metastore,
        resolve: Resolver,
        paths: DumpPaths,
        *,
        database_name: str,
        event_id: EventId,
        snapshot: DatabaseSnapshot,
        cm_root: str | None,
        external_base: str | None,
    ) -> None:
        self._source = source
        self._resolve = resolve
        self._paths = paths
        self._database_name = database_name
        self._event_id = event_id
        self._snapshot = snapshot
        self._cm_root = cm_root
        self._external_base = external_base
        self._external: list[ExternalDirectory] = []

    def write_database(self) -> None:
        """The database object."""
        database = self._source.get_database(self._database_name)
        parameters = replicated_parameters(database.parameters)
        parameters |= {
            "hive.repl.is.custom.db.loc": "false",
            "hive.repl.is.custom.db.managedloc": "false",
            LAST_EVENT: str(self._event_id),
        }
        text = database_to_json(owned_database(replace(database, parameters=parameters)))
        write_text(
            self._resolve(self._paths.database_metadata(self._database_name)),
            DatabaseMetadata(database=text).format(),
        )

    def write_tables(self, tables: tuple[Table, ...]) -> Iterator[TableFiles]:
        """Each table with its partitions and files.

        A table that is dropped meanwhile is left out: the drop is an event of the next dump.
        """
        for table in tables:
            if table.type == TableType.MATERIALIZED_VIEW.value:
                continue
            try:
                dumped = self._write_table(table)
            except (NoSuchObjectError, FileNotFoundError):
                if self._is_same_table(table):
                    raise
                continue
            if self._is_same_table(table):
                yield dumped

    def write_external_list(self) -> None:
        """Directories of external tables, if their data is to be copied."""
        write_external_list(self._resolve, self._paths, self._external)

    def _is_same_table(self, table: Table) -> bool:
        try:
            now = self._source.get_table(table.database_name, table.name)
        except NoSuchObjectError:
            return False
        return (now.id, now.create_time) == (table.id, table.create_time)

    def _write_table(self, table: Table) -> TableFiles:
        write_ids = self._snapshot.write_ids.get(table.full_name)
        snapshot = TableSnapshot(
            txns=self._snapshot.txns, write_ids=write_ids, is_insert_only=table.is_insert_only
        )
        has_files = not is_view(table) and not is_external(table)
        partitions = partitions_of(self._source, table)
        files: list[EncodedUri] = []
        if has_files and not table.is_partitioned:
            files += self._write_files(table, None, table.storage.location, snapshot)
        for one in partitions if has_files else ():
            name = partition_name(table.partition_columns, one.values)
            files += self._write_files(table, name, one.storage.location, snapshot)
        if is_external(table) and self._external_base is not None:
            self._external += external_directories(
                self._resolve, table, partitions, self._external_base
            )
        spec = ReplicationSpec(
            scope=SCOPE_METADATA if is_view(table) else SCOPE_ALL,
            last_event_id=self._event_id,
            is_replace=True,
            valid_write_ids=None if write_ids is None else write_ids.format(),
            valid_txns=None if write_ids is None else self._snapshot.txns.format(),
        )
        metadata = TableMetadata(
            spec=spec,
            table=table_to_json(replace(table, parameters=self._parameters(table.parameters))),
            partitions=tuple(
                partition_to_json(replace(one, parameters=self._parameters(one.parameters)))
                for one in partitions
            ),
        )
        path = self._paths.table_metadata(table.database_name, table.name)
        write_text(self._resolve(path), metadata.format())
        return TableFiles(
            table_name=table.name, partition_count=len(partitions), files=tuple(files)
        )

    def _parameters(self, parameters: object) -> dict[str, str]:
        found = dict(parameters) if isinstance(parameters, dict) else {}
        return replicated_parameters(found) | {LAST_EVENT: str(self._event_id)}

    def _write_files(
        self, table: Table, partition: str | None, location: str | None, snapshot: TableSnapshot
    ) -> tuple[EncodedUri, ...]:
        if location is None:
            return ()
        files = snapshot_files(self._resolve(location), snapshot, self._cm_root)
        path = self._paths.table_files(table.database_name, table.name, partition)
        write_text(self._resolve(path), format_files(files))
        return files


def require_no_rename(source: Metastore, database: str, wanted: EventRange) -> None:
    """Raises ReplError if a table or partition was renamed while it was dumped.

    A drop and a new object of the same name are healed by their events; a renamed object may have
    been missed under both names.
    """
    for event in read_events(source, wanted):
        if (event.database_name or "").lower() != database:
            continue
        where = f"event {event.id} ({event.type})"
        if event.type == EventType.ALTER_TABLE.value:
            payload = Payload.parse(message_json(event), where)
            before = table_from_json(payload.text("tableObjBeforeJson"))
            is_renamed = before.name != table_from_json(payload.text("tableObjAfterJson")).name
        elif event.type == EventType.ALTER_PARTITION.value:
            payload = Payload.parse(message_json(event), where)
            if "partitionObjBeforeJson" not in payload.fields:
                continue
            before_values = partition_from_json(payload.text("partitionObjBeforeJson")).values
            after = partition_from_json(payload.text("partitionObjAfterJson"))
            is_renamed = before_values != after.values
        else:
            continue
        if is_renamed:
            raise ReplError(
                f"{where}: a table or partition was renamed while database {database} was dumped, "
                "and may be missing; dump again"
            )
