"""Where things are in a dump: paths and marker files of Hive 4's layout (docs/format/dump.md).

A database's dumps stand below `<root>/<base64 of its name>/`, each in a directory of its own with
everything under `hive/`. Source of the rules: facts on REPL DUMP, checked against real dumps.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class DumpPaths:
    """The paths inside one dump; ``root`` is the dump's own directory, above ``hive/``. ``part``:
    where below it everything is, in the tables that are brought anew."""

    root: str
    part: str = HIVE_DIRECTORY

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
    def names_anew(self) -> str:
        """Names that the replica gets anew, or not any more, in dumps of ours."""
        return f"{self.hive}/_hms_bridge_tables_anew"

    @property
    def scope_note(self) -> str:
        """Which scope the replica has before an incremental dump of ours, and names of tables that
        come or go because of it."""
        return f"{self.hive}/_hms_bridge_scope"

    def table_list(self, database: str) -> str:
        """Names of the tables of a limited scope (Hive: ReplUtils.REPL_TABLE_LIST_DIR_NAME)."""
        return f"{self.hive}/{TABLES_DIRECTORY}/{database}"

    @property
    def non_recoverable(self) -> str:
        """Marker: a person must look at this dump."""
        return f"{self.root}/{NON_RECOVERABLE}"

    @property
    def metadata(self) -> str:
        """Kind of the dump, its event range, its archive."""
        return f"{self.hive}/{DUMP_METADATA}"

    @property
    def plain_tables(self) -> str:
        """What managed tables without transactions held, in dumps of ours."""
        return f"{self.hive}/_hms_bridge_plain_tables"

    @property
    def going_on(self) -> str:
        """What the next dump has to know beside where this one ends, in dumps of ours."""
        return f"{self.hive}/_hms_bridge_going_on"

    @property
    def origin(self) -> str:
        """Hashes of the events at which it begins and ends, in dumps of ours."""
        return f"{self.hive}/_hms_bridge_origin"

    @property
    def beginning(self) -> str:
        """Marker of ours: a dump of nothing, of a replica that took its source's place."""
        return f"{self.hive}/_hms_bridge_beginning"

    @property
    def dropped(self) -> str:
        """Marker of ours: the database was dropped, and nothing else is told."""
        return f"{self.hive}/_hms_bridge_dropped"

    @property
    def manifest(self) -> str:
        """Hashes of all other texts, in dumps of ours."""
        return f"{self.hive}/{DUMP_MANIFEST}"

    @property
    def finished_dump(self) -> str:
        """Marker, written last: the dump is complete."""
        return f"{self.hive}/_finished_dump"

    @property
    def finished_load(self) -> str:
        """Marker, written last: the dump has been loaded."""
        return f"{self.hive}/_finished_load"

    @property
    def load_metadata(self) -> str:
        """The target's event id after the load."""
        return f"{self.hive}/_load_metadata"

    @property
    def events_dump(self) -> str:
        """Progress of an incremental dump."""
        return f"{self.hive}/_events_dump"

    @property
    def open_txns(self) -> str:
        """Source transactions that are open at the end of an incremental dump."""
        return f"{self.hive}/_open_txns"

    @property
    def replays(self) -> str:
        """Which transactions a replica may keep open after an incremental dump of ours."""
        return f"{self.hive}/_hms_bridge_replays"

    @property
    def external_file_list(self) -> str:
        """Directories of external tables that the load copies."""
        return f"{self.hive}/_file_list_external"

    @property
    def bootstrap_metadata_root(self) -> str:
        """One directory for each database (there is one) of a bootstrap dump."""
        return f"{self.hive}/metadata"

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

    @property
    def dump_metadata(self) -> str:
        """Kind of the event and its payload."""
        return f"{self.root}/{DUMP_METADATA}"

    @property
    def object_metadata(self) -> str:
        """The object of a DDL event."""
        return f"{self.root}/{OBJECT_METADATA}"

    @property
    def data(self) -> str:
        """Where the file lists of a DDL event are."""
        return f"{self.root}/data"

    @property
    def emptied(self) -> str:
        """Where a commit left an empty base, in dumps of ours."""
        return f"{self.root}/_hms_bridge_emptied"

    def files(self, partition: str | None = None) -> str:
        """The file list of a DDL event's table or partition."""
        below = "" if partition is None else f"/{partition}"
        return f"{self.data}{below}/{FILES_LIST}"

    def table(self, database: str, table: str) -> EventPaths:
        """The part of a commit event that belongs to one table, with the same paths inside."""
        return EventPaths(f"{self.root}/{database}.{table}")
