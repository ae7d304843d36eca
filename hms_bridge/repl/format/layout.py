"""Where things are in a dump: paths and marker files of Hive 4's layout (docs/format/dump.md).

A database's dumps stand below `<root>/<base64 of its name>/`, each in a directory of its own with
everything under `hive/`. Source of the rules: facts on REPL DUMP, checked against real dumps.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import overload

HIVE_DIRECTORY = "hive"
"""The part of a dump that Hive's own data has; others may keep theirs beside it."""

NON_RECOVERABLE = "_non_recoverable"
"""Beside `hive/`: an error that a person must look at; blocks dump and load until it is removed."""

FILES_LIST = "_files"
OBJECT_METADATA = "_metadata"
DUMP_METADATA = "_dumpmetadata"
DUMP_MANIFEST = "_hms_bridge_manifest"
CONSTRAINTS = "_constraints"
FUNCTIONS = "_functions"
BATCH_PREFIX = "events_batch_"
ANEW_DIRECTORY = "_bootstrap"
TABLES_DIRECTORY = "_tables"
BOOTSTRAP_DIRECTORIES = ("metadata", "data")

PROGRESS_DIRECTORY = "_hms_bridge_progress"
"""Beside `hive/`, while an incremental dump of ours is written: what of it is there whole."""

DRILLS_DIRECTORY = "_hms_bridge_drill"
"""Below the root of dumps: what drills make for themselves. No database's name is written so."""


def database_directory(root: str, database: str) -> str:
    """The directory with all dumps of a database; its name is base64 of the lower-case name."""
    encoded = base64.b64encode(database.lower().encode()).decode("ascii")
    return f"{root.rstrip('/')}/{encoded}"


def database_of(directory_name: str) -> str | None:
    """The database that a directory below the root belongs to; None if it is none of ours."""
    try:
        return base64.b64decode(directory_name, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


def is_place_of_drill(directory: str) -> bool:
    """Whether one drill keeps its dumps there: below its database's, below that of all drills."""
    levels = directory.split("/")[-3:]
    return len(levels) == 3 and levels[0] == DRILLS_DIRECTORY and database_of(levels[1]) is not None


class _Below:
    """A path in a dump, or of an event: this name below its directory."""

    def __init__(self, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, paths: None, owner: type) -> _Below: ...
    @overload
    def __get__(self, paths: DumpPaths | EventPaths, owner: type) -> str: ...
    def __get__(self, paths: DumpPaths | EventPaths | None, owner: type) -> str | _Below:
        if paths is None:
            return self
        above = paths.root if isinstance(paths, EventPaths) else paths.hive
        return f"{above}/{self._name}"


@dataclass(frozen=True, slots=True)
class DumpPaths:
    """The paths inside one dump; ``root`` is the dump's own directory, above ``hive/``. ``part``:
    where below it everything is, in the tables that are brought anew."""

    root: str
    part: str = HIVE_DIRECTORY

    names_anew = _Below("_hms_bridge_tables_anew")
    """Names that the replica gets anew, or not any more, in dumps of ours."""
    scope_note = _Below("_hms_bridge_scope")
    """Which scope the replica has before an incremental dump of ours, and names of tables that come
    or go because of it."""
    metadata = _Below(DUMP_METADATA)
    """Kind of the dump, its event range, its archive."""
    plain_tables = _Below("_hms_bridge_plain_tables")
    """What managed tables without transactions held, in dumps of ours."""
    going_on = _Below("_hms_bridge_going_on")
    """What the next dump has to know beside where this one ends, in dumps of ours."""
    origin = _Below("_hms_bridge_origin")
    """Hashes of the events at which it begins and ends, in dumps of ours."""
    beginning = _Below("_hms_bridge_beginning")
    """Marker of ours: a dump of nothing, of a replica that took its source's place."""
    dropped = _Below("_hms_bridge_dropped")
    """Marker of ours: the database was dropped, and nothing else is known."""
    manifest = _Below(DUMP_MANIFEST)
    """Hashes of all other texts, in dumps of ours."""
    finished_dump = _Below("_finished_dump")
    """Marker, written last: the dump is complete."""
    finished_load = _Below("_finished_load")
    """Marker, written last: the dump has been loaded."""
    load_metadata = _Below("_load_metadata")
    """The target's event id after the load."""
    events_dump = _Below("_events_dump")
    """Progress of an incremental dump."""
    open_txns = _Below("_open_txns")
    """Source transactions that are open at the end of an incremental dump."""
    replays = _Below("_hms_bridge_replays")
    """Which transactions a replica may keep open after an incremental dump of ours."""
    external_file_list = _Below("_file_list_external")
    """Directories of external tables that the load copies."""
    bootstrap_metadata_root = _Below("metadata")
    """One directory for each database (there is one) of a bootstrap dump."""

    @property
    def hive(self) -> str:
        """Everything but the non-recoverable marker is below it. Loads record it as checkpoint."""
        return f"{self.root}/{self.part}"

    @property
    def tables_anew(self) -> DumpPaths:
        """Tables that an incremental dump brings whole, with ``metadata`` and ``data`` as in a
        bootstrap dump (Hive: ReplUtils.INC_BOOTSTRAP_ROOT_DIR_NAME)."""
        return DumpPaths(self.root, f"{HIVE_DIRECTORY}/{ANEW_DIRECTORY}")

    @property
    def non_recoverable(self) -> str:
        """Marker: a person must look at this dump."""
        return f"{self.root}/{NON_RECOVERABLE}"

    @property
    def progress(self) -> str:
        """Where an unfinished dump of ours notes what it has written."""
        return f"{self.root}/{PROGRESS_DIRECTORY}"

    def table_list(self, database: str) -> str:
        """Names of the tables of a limited scope (Hive: ReplUtils.REPL_TABLE_LIST_DIR_NAME)."""
        return f"{self.hive}/{TABLES_DIRECTORY}/{database}"

    def database_metadata(self, database: str) -> str:
        """The database object of a bootstrap dump."""
        return f"{self.bootstrap_metadata_root}/{database}/{OBJECT_METADATA}"

    def tables_root(self, database: str) -> str:
        """One directory for each table; names that begin with ``_`` are none."""
        return f"{self.bootstrap_metadata_root}/{database}"

    def functions(self, database: str) -> str:
        """One directory for each function of a bootstrap dump."""
        return f"{self.tables_root(database)}/{FUNCTIONS}"

    def function_metadata(self, database: str, function: str) -> str:
        """The function object of a bootstrap dump."""
        return f"{self.functions(database)}/{function}/{OBJECT_METADATA}"

    def constraints(self, database: str) -> str:
        """The files of constraints, two for each table that has some."""
        return f"{self.tables_root(database)}/{CONSTRAINTS}"

    def table_metadata(self, database: str, table: str) -> str:
        """The table object with its partitions, of a bootstrap dump."""
        return f"{self.bootstrap_metadata_root}/{database}/{table}/{OBJECT_METADATA}"

    def table_data(self, database: str, table: str) -> str:
        """Where the file lists of a table are, of a bootstrap dump."""
        return f"{self.hive}/data/{database}/{table}"

    def table_files(self, database: str, table: str, partition: str | None = None) -> str:
        """The file list of a table or of one partition (``a=1/b=2``), of a bootstrap dump."""
        below = "" if partition is None else f"/{partition}"
        return f"{self.table_data(database, table)}{below}/{FILES_LIST}"

    def event(self, event_id: int, batch: int | None) -> EventPaths:
        """The directory of one event, in a batch counted from 1 or (None) directly below."""
        above = self.hive if batch is None else f"{self.hive}/{BATCH_PREFIX}{batch}"
        return EventPaths(f"{above}/{event_id}")


@dataclass(frozen=True, slots=True)
class EventPaths:
    """The paths inside the directory of one event."""

    root: str

    dump_metadata = _Below(DUMP_METADATA)
    """Kind of the event and its payload."""
    object_metadata = _Below(OBJECT_METADATA)
    """The object of a DDL event."""
    data = _Below("data")
    """Where the file lists of a DDL event are."""
    emptied = _Below("_hms_bridge_emptied")
    """Where a commit left an empty base, in dumps of ours."""

    def files(self, partition: str | None = None) -> str:
        """The file list of a DDL event's table or partition."""
        below = "" if partition is None else f"/{partition}"
        return f"{self.data}{below}/{FILES_LIST}"

    def table(self, database: str, table: str) -> EventPaths:
        """The part of a commit event that belongs to one table, with the same paths inside."""
        return EventPaths(f"{self.root}/{database}.{table}")
