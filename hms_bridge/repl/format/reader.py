"""A dump as records: every text read, every name checked, nothing believed that could escape.

Reads what real Hive 4 writes, and what ``dump`` writes. Data files are not touched here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from changemanager.location import Resolver
from hms_bridge.errors import DumpIncompleteError, MetaError, MetastoreError, ReplError
from hms_bridge.model.catalog import Database, Partition, Table
from hms_bridge.model.function import Function, Resource
from hms_bridge.model.ids import EventId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.target import TableName
from hms_bridge.repl.format.constraints import FOREIGN_PREFIX, OWN_PREFIX, parse_constraints
from hms_bridge.repl.format.dump_metadata import DumpMetadata, DumpType
from hms_bridge.repl.format.event_payload import Message
from hms_bridge.repl.format.events_dump import EventsDump
from hms_bridge.repl.format.external_list import ExternalDirectory, parse_external_list
from hms_bridge.repl.format.files_list import parse_files
from hms_bridge.repl.format.hashed_texts import CheckedTexts
from hms_bridge.repl.format.layout import (
    ANEW_DIRECTORY,
    BATCH_PREFIX,
    BOOTSTRAP_DIRECTORIES,
    CONSTRAINTS,
    FILES_LIST,
    FUNCTIONS,
    TABLES_DIRECTORY,
    DumpPaths,
    EventPaths,
)
from hms_bridge.repl.format.object_metadata import (
    DatabaseMetadata,
    FunctionMetadata,
    ReplicationSpec,
    TableMetadata,
)
from hms_bridge.repl.format.replays import Replays
from hms_bridge.repl.format.scope_note import ScopeNote
from hms_bridge.repl.format.side_texts import parse_names, parse_origin, parse_table_names
from hms_bridge.repl.format.texts import child_directories, is_there
from hms_bridge.repl.format.untrusted import (
    DumpedFile,
    DumpRules,
    checked_file,
    checked_name,
    checked_partition,
)
from hms_bridge.wire.convert_constraint import TableConstraints
from hms_bridge.wire.convert_function import function_from_struct
from hms_bridge.wire.object_json import (
    database_from_json,
    partition_from_json,
    struct_from_json,
    table_from_json,
)

ObjectT = TypeVar("ObjectT")
MessageT = TypeVar("MessageT", bound=Message)
MessageKind = type[MessageT]


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpedPartition:
    """A partition and the files that the dump names for it."""

    name: str
    partition: Partition
    files: tuple[DumpedFile, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpedTable:
    """A table, its own files (unpartitioned tables), its partitions with theirs. ``emptied``: those
    (or "", the table) that a commit overwrote with nothing."""

    spec: ReplicationSpec
    table: Table
    files: tuple[DumpedFile, ...]
    partitions: tuple[DumpedPartition, ...]
    emptied: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpedResource:
    """What a function needs; ``file`` None: it stays where it is."""

    resource: Resource
    file: DumpedFile | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpedFunction:
    """A function as it was at an event."""

    function: Function
    resources: tuple[DumpedResource, ...]
    last_event_id: EventId

    @property
    def files(self) -> tuple[DumpedFile, ...]:
        """What a load copies."""
        return tuple(resource.file for resource in self.resources if resource.file is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpedEvent:
    """One event of an incremental dump."""

    id: EventId
    paths: EventPaths
    metadata: DumpMetadata

    @property
    def type(self) -> str:
        """The dumped kind, such as ``EVENT_COMMIT_TXN``."""
        return self.metadata.type

    @property
    def payload(self) -> str | None:
        """The message, as JSON."""
        return self.metadata.payload

    @property
    def where(self) -> str:
        """The event for messages."""
        return f"event {self.id} ({self.type}) in {self.paths.root}"

    def read(self, kind: MessageKind[MessageT]) -> MessageT:
        """The message, as a record of its kind. Raises ReplError if it is damaged."""
        return kind.parse(self.payload, self.where)


class DumpReader:
    """One finished dump. Every method raises ReplError for what is damaged or forged."""

    def __init__(self, resolve: Resolver, paths: DumpPaths, rules: DumpRules) -> None:
        self._resolve = resolve
        self.paths = paths
        self.rules = rules
        self._texts = CheckedTexts(resolve, paths, rules.text_bytes_max)
        self._names_anew: frozenset[str] | None = None
        self._scope_note: ScopeNote | None = None
        self.metadata = DumpMetadata.parse(self._texts.read(paths.metadata), paths.metadata)

    @property
    def is_bootstrap(self) -> bool:
        """Whether this is a whole database. Raises ReplError for kinds that cannot be loaded."""
        if self.metadata.type == DumpType.BOOTSTRAP.value:
            return True
        if self.metadata.type == DumpType.INCREMENTAL.value:
            return False
        raise ReplError(
            f"{self.paths.metadata}: dumps of kind {self.metadata.type} cannot be loaded here; "
            "load it with Hive or make a new bootstrap dump"
        )

    @property
    def source_database(self) -> str:
        """The database that was dumped."""
        if self.metadata.scope is not None:
            return checked_name(self.metadata.scope.database_name, "database")
        names = child_directories(self._resolve(self.paths.bootstrap_metadata_root))
        if len(names) != 1:
            raise ReplError(f"{self.paths.metadata}: does not say which database was dumped")
        return checked_name(names[0], "database")

    def unloaded_parts(self) -> tuple[str, ...]:
        """What a bootstrap dump has beside tables, and nothing here loads; or an incremental one
        beside the tables that come whole, where no functions are."""
        paths = self.paths if self.is_bootstrap else self.paths.tables_anew
        loaded = (CONSTRAINTS, FUNCTIONS) if self.is_bootstrap else (CONSTRAINTS,)
        root = self._resolve(paths.tables_root(self.source_database))
        parts = (name for name in child_directories(root) if name.startswith("_"))
        return tuple(
            name
            for name in parts
            if name not in loaded and root.volume.children(root.child(name).path)
        )

    @property
    def names_anew(self) -> frozenset[str]:
        """Names that an incremental dump brings anew, or (ours) that the source has no more; read
        once. A dump of Hive has no list of them, but one directory each."""
        if self._names_anew is None:
            path = self.paths.names_anew
            text = self._texts.read_if_there(path)
            if text is None and not self.has_manifest:
                self._names_anew = frozenset(self._table_names(self.paths.tables_anew))
            else:
                self._names_anew = parse_table_names(text, path)
        return self._names_anew

    @property
    def scope(self) -> ReplScope:
        """Which tables the dump is of."""
        return self.metadata.scope or ReplScope(database_name=self.source_database)

    @property
    def scope_note(self) -> ScopeNote:
        """From which scope it goes on, and what comes or goes by that; read once. A dump of Hive
        has none, and goes on from its own."""
        if self._scope_note is None:
            path = self.paths.scope_note
            text = self._texts.read_if_there(path)
            self._scope_note = (
                ScopeNote(before=self.scope)
                if text is None
                else ScopeNote.parse(text, path, self.source_database)
            )
        return self._scope_note

    def origin(self) -> dict[EventId, str]:
        """Hashes of the source's events at which a dump of ours begins and ends."""
        path = self.paths.origin
        return parse_origin(self._texts.read_if_there(path), path)

    def replays(self) -> Replays:
        """Which transactions a replica may keep open, and which have ended without an event."""
        path = self.paths.replays
        return Replays.parse(self._texts.read_if_there(path), path)

    def tables_anew(self) -> tuple[DumpedTable, ...]:
        """The tables that an incremental dump brings whole."""
        if not self.names_anew:
            return ()
        paths = self.paths.tables_anew
        tables = tuple(self._whole_table(paths, name) for name in self._table_names(paths))
        for dumped in tables:
            if dumped.table.name not in self.names_anew:
                raise ReplError(
                    f"{self.paths.names_anew}: {dumped.table.name} is missing; dump again"
                )
        return tables

    def require_known(self) -> None:
        """Raises ReplError for a directory that a load would pass over: of tables that are copied
        anew beside the events, of a failover, of a later Hive."""
        hive = self._resolve(self.paths.hive)
        for name in child_directories(hive):
            if name in BOOTSTRAP_DIRECTORIES if self.is_bootstrap else _is_of_events(name):
                continue
            if name == TABLES_DIRECTORY or (name == ANEW_DIRECTORY and self.names_anew):
                continue
            raise ReplError(
                f"{hive.child(name).uri}: nothing here reads this part of a dump of Hive, and "
                "what it holds would be missing. Load the dump with Hive, or make a new bootstrap "
                "dump"
            )

    @property
    def has_manifest(self) -> bool:
        """Whether the dump is one of ours, with the hash of each text."""
        return self._texts.manifest is not None

    def check_texts(self) -> None:
        """Read all texts of a dump of ours: none may be missing, cut or changed. A dump of Hive
        cannot prove that it is whole; what contradicts itself is refused, as it is read."""
        self._texts.check_all()

    def database(self) -> Database:
        """The database object of a bootstrap dump."""
        path, texts = self.paths.database_metadata(self.source_database), self._texts
        return _decoded(
            path,
            lambda: database_from_json(DatabaseMetadata.parse(texts.read(path), path).database),
        )

    def table_names(self) -> tuple[str, ...]:
        """Tables and views of a bootstrap dump, sorted."""
        return self._table_names(self.paths)

    def _table_names(self, paths: DumpPaths) -> tuple[str, ...]:
        root = paths.tables_root(self.source_database)
        names = [name for name in self._texts.directories(root) if not name.startswith("_")]
        return tuple(checked_name(name, "table") for name in names)

    def table(self, name: str) -> DumpedTable:
        """One table of a bootstrap dump."""
        return self._whole_table(self.paths, name)

    def _whole_table(self, paths: DumpPaths, name: str) -> DumpedTable:
        database = self.source_database
        return self._table(
            paths.table_metadata(database, name),
            paths.table_data(database, name),
            expected=TableName(database, name),
        )

    def functions(self) -> tuple[DumpedFunction, ...]:
        """Those of a bootstrap dump; none if they are let pass."""
        if FUNCTIONS in self.rules.passed_kinds:
            return ()
        database = self.source_database
        names = child_directories(self._resolve(self.paths.functions(database)))
        return tuple(
            self._function(self.paths.function_metadata(database, checked_name(name, "function")))
            for name in names
        )

    def event_function(self, event: DumpedEvent) -> DumpedFunction:
        """The function of a CREATE FUNCTION."""
        return self._function(event.paths.object_metadata)

    def _function(self, path: str) -> DumpedFunction:
        metadata = FunctionMetadata.parse(self._texts.read(path), path)
        function = _decoded(
            path, lambda: function_from_struct(struct_from_json("Function", metadata.function))
        )
        return DumpedFunction(
            function=replace(function, name=checked_name(function.name, "function")),
            resources=tuple(self._resource(resource, path) for resource in function.resources),
            last_event_id=metadata.last_event_id,
        )

    def _resource(self, resource: Resource, path: str) -> DumpedResource:
        """Hive encodes what is to be copied, and nothing else."""
        is_reference = "#" in resource.uri
        file = (
            checked_file(resource.uri, self.rules, path, is_transactional=False)
            if is_reference
            else None
        )
        return DumpedResource(resource=resource, file=file)

    def constraints(self) -> tuple[TableConstraints, ...]:
        """Those of the tables of a bootstrap dump, or of those that an incremental one brings
        whole; none if they are let pass. Raises ReplError for a file that is none of them."""
        if CONSTRAINTS in self.rules.passed_kinds:
            return ()
        paths = self.paths if self.is_bootstrap else self.paths.tables_anew
        root = self._resolve(paths.constraints(self.source_database))
        if not is_there(root):
            return ()
        names = sorted(child.name for child in root.volume.children(root.path))
        return tuple(
            of_table
            for name in names
            if not name.startswith(".")
            for of_table in self._constraints(root.child(name).uri, name)
        )

    def _constraints(self, path: str, name: str) -> tuple[TableConstraints, ...]:
        if not name.startswith((OWN_PREFIX, FOREIGN_PREFIX)):
            raise ReplError(f"{path}: no file of constraints is called so; dump again")
        table = checked_name(name[len(OWN_PREFIX) :], "table")
        return parse_constraints(
            self._texts.read(path), path, TableName(self.source_database, table)
        )

    def external_directories(self) -> tuple[ExternalDirectory, ...]:
        """Directories of external tables that the dump asks to copy."""
        text = self._texts.read_if_there(self.paths.external_file_list)
        return parse_external_list(text or "", self.rules, self.paths.external_file_list)

    def event_paths(self) -> tuple[tuple[EventId, EventPaths], ...]:
        """Ids and places of the events of an incremental dump, ascending."""
        hive = self._resolve(self.paths.hive)
        above = [hive] + [hive.child(name) for name in child_directories(hive) if _is_batch(name)]
        paths: dict[EventId, EventPaths] = {}
        for directory in above:
            for name in child_directories(directory):
                # int() reads digits of other scripts, too: two names would be one event.
                if not name.isdecimal() or not name.isascii():
                    continue
                event_id = EventId(int(name))
                if event_id in paths:
                    raise ReplError(f"{directory.uri}: event {name} is there twice; dump again")
                paths[event_id] = EventPaths(directory.child(name).uri)
        if len(paths) > self.rules.events_max:
            raise ReplError(f"{self.paths.hive}: {len(paths)} events are more than allowed")
        self._require_complete(paths)
        return tuple(sorted(paths.items()))

    def _require_complete(self, paths: dict[EventId, EventPaths]) -> None:
        """The progress file must agree: a copy of a dump may have lost directories on the way."""
        text = self._texts.read_if_there(self.paths.events_dump)
        if text is None:
            if paths:
                raise DumpIncompleteError(f"{self.paths.events_dump} is missing; dump again")
            return
        progress = EventsDump.parse(text, self.paths.events_dump)
        # Early versions wrote no count.
        if progress.event_count and progress.event_count != len(paths):
            raise DumpIncompleteError(
                f"{self.paths.hive}: {len(paths)} event directories where "
                f"{progress.event_count} were dumped; copy the dump again"
            )

    def events(self) -> Iterator[DumpedEvent]:
        """The events, ascending, read one by one."""
        return (self._event(event_id, paths) for event_id, paths in self.event_paths())

    def last_event(self) -> DumpedEvent | None:
        """The one with which an incremental dump ends; None if it has none."""
        paths = self.event_paths()
        return self._event(*paths[-1]) if paths else None

    def _event(self, event_id: EventId, paths: EventPaths) -> DumpedEvent:
        metadata = DumpMetadata.parse(self._texts.read(paths.dump_metadata), paths.dump_metadata)
        if metadata.to_event_id != event_id:
            raise ReplError(
                f"{paths.dump_metadata}: says event {metadata.to_event_id}; it is damaged"
            )
        return DumpedEvent(id=event_id, paths=paths, metadata=metadata)

    def event_table(self, event: DumpedEvent) -> DumpedTable:
        """The table and partitions of a DDL event."""
        return self._table(event.paths.object_metadata, event.paths.data, expected=None)

    def commit_tables(self, event: DumpedEvent) -> tuple[DumpedTable, ...]:
        """What a commit wrote, table by table."""
        tables = []
        for name in self._texts.directories(event.paths.root):
            database, separator, table = name.partition(".")
            if not separator:
                continue
            expected = TableName(checked_name(database, "database"), checked_name(table, "table"))
            paths = event.paths.table(expected.database, expected.table)
            dumped = self._table(paths.object_metadata, paths.data, expected=expected)
            emptied = parse_names(
                self._texts.read_if_there(paths.emptied), paths.emptied, "partitions"
            )
            tables.append(replace(dumped, emptied=emptied))
        return tuple(tables)

    def _table(self, metadata_path: str, data_path: str, expected: TableName | None) -> DumpedTable:
        metadata = TableMetadata.parse(self._texts.read(metadata_path), metadata_path)
        table = _decoded(metadata_path, lambda: table_from_json(metadata.table))
        checked_name(table.name, "table")
        checked_name(table.database_name, "database")
        if expected is not None and TableName(table.database_name, table.name) != expected:
            raise ReplError(f"{metadata_path}: holds {table.full_name} where {expected} is due")
        partitions = tuple(
            self._partition(table, text, metadata_path, data_path) for text in metadata.partitions
        )
        files = () if table.is_partitioned else self._files(table, data_path)
        return DumpedTable(spec=metadata.spec, table=table, files=files, partitions=partitions)

    def _partition(
        self, table: Table, text: str, metadata_path: str, data_path: str
    ) -> DumpedPartition:
        partition = _decoded(metadata_path, lambda: partition_from_json(text))
        try:
            name = partition_name(table.partition_columns, partition.values)
        except MetaError as error:
            raise ReplError(f"{metadata_path}: {error}") from error
        return DumpedPartition(
            # Before the name becomes a path.
            name=checked_partition(name),
            partition=partition,
            files=self._files(table, f"{data_path}/{name}"),
        )

    def _files(self, table: Table, directory: str) -> tuple[DumpedFile, ...]:
        """Hive makes no directory where there are no files; one without a list has lost it, or
        holds the data files themselves."""
        path = f"{directory}/{FILES_LIST}"
        text = self._texts.read_if_there(path)
        if text is None:
            if is_there(self._resolve(directory)):
                raise DumpIncompleteError(
                    f"{path} is missing: copy the dump again. If the directory holds data files, "
                    "the source dumps with hive.repl.run.data.copy.tasks.on.target=false, which "
                    "cannot be loaded here: dump with true"
                )
            return ()
        if text and not text.endswith("\n"):
            raise DumpIncompleteError(f"{path}: its last line is cut; copy the dump again")
        return parse_files(text, self.rules, path, is_transactional=table.is_transactional)


def _is_batch(name: str) -> bool:
    return name.startswith(BATCH_PREFIX) and name.removeprefix(BATCH_PREFIX).isdecimal()


def _is_of_events(name: str) -> bool:
    return _is_batch(name) or (name.isascii() and name.isdecimal())


def _decoded(path: str, decode: Callable[[], ObjectT]) -> ObjectT:
    """Name the file in what went wrong with an object in it."""
    try:
        return decode()
    except MetastoreError as error:
        raise ReplError(f"{path}: {error}") from error
