"""Load a whole database: objects, files, then the write ids that make the rows visible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.counted import counted
from hms_bridge.model.properties import CHECKPOINT
from hms_bridge.repl.format.object_metadata import SCOPE_ALL, SCOPE_METADATA
from hms_bridge.repl.format.passed_kinds import refusal
from hms_bridge.repl.format.reader import DumpedTable, DumpReader
from hms_bridge.repl.load.constraints import load_constraints
from hms_bridge.repl.load.functions import put_function
from hms_bridge.repl.load.own_source import METASTORE_HINT
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.scope import drop_outside, drop_replicated, is_kept, note_kept
from hms_bridge.repl.load.whole_tables import load_tables, write_ids_of
from hms_bridge.repl.target_objects import (
    BEGUN,
    last_event_of,
    new_database,
    target_table,
)


def check_bootstrap(reader: DumpReader, target: Database | None, table_names: int) -> None:
    """Raises ReplError unless the target may be bootstrapped from this dump."""
    checkpoint = reader.paths.hive
    if target is None:
        return
    if last_event_of(target.parameters) is not None:
        raise ReplError(
            f"database {target.name} was bootstrapped before and stands at source event "
            f"{last_event_of(target.parameters)}; load incremental dumps, or drop it to begin anew"
        )
    begun = target.parameters.get(CHECKPOINT)
    if begun is not None and begun != checkpoint:
        raise ReplError(
            f"database {target.name} is half bootstrapped from another dump, {begun}; load that "
            "one to its end, or drop the database"
        )
    if begun is None and table_names:
        raise ReplError(
            f"database {target.name} of this metastore has {counted(table_names, 'table')} that no "
            f"dump brought; {METASTORE_HINT} Else load into another database (--into)"
        )


def check_tables(reader: DumpReader, external_base: str | None) -> tuple[str, ...]:
    """Names of the tables to load. Raises ReplError for one that cannot be, before any is."""
    _check_parts(reader)
    reader.constraints()
    names = []
    for name in reader.table_names():
        dumped = reader.table(name)
        if dumped.spec.scope not in (SCOPE_ALL, SCOPE_METADATA) or dumped.spec.is_noop:
            continue
        _check(dumped, external_base)
        names.append(name)
    return tuple(names)


def _check_parts(reader: DumpReader) -> None:
    """Raises ReplError for what is beside the tables and would be left out."""
    for part in reader.unloaded_parts():
        if part not in reader.rules.passed_kinds:
            raise refusal(
                f"{reader.paths.hive}: {part}", part, f"what it holds ({part.strip('_')})"
            )


def _check(dumped: DumpedTable, external_base: str | None) -> None:
    target_table(
        dumped.table,
        dumped.table.database_name,
        last_event=dumped.spec.last_event_id,
        external_base=external_base,
    )
    if dumped.table.is_transactional:
        write_ids_of(dumped)


def load_bootstrap(reader: DumpReader, replica: Replica, names: tuple[str, ...]) -> None:
    """Bring the database to the dump's state. Stopped anywhere, it goes on from there.

    Rows of a transactional table appear at once, when its write-id state is set after its files.
    """
    _begin(reader, replica)
    load_tables(reader.paths.hive, replica, map(reader.table, names))
    load_constraints(replica, reader.constraints())
    for function in reader.functions():
        put_function(replica, function)


def check_tables_anew(reader: DumpReader, external_base: str | None) -> None:
    """Raises ReplError for a table that an incremental dump brings whole and that cannot be
    loaded, before anything is."""
    _check_parts(reader)
    reader.constraints()
    for dumped in reader.tables_anew():
        _check(dumped, external_base)


def replace_tables(reader: DumpReader, replica: Replica) -> None:
    """Put the tables that an incremental dump brings whole in the place of what the replica has;
    other names that it has go. Stopped anywhere, it goes on from there."""
    checkpoint = reader.paths.hive
    dumped_tables = reader.tables_anew()  # before anything is dropped
    for name in sorted(reader.names_anew):
        table = replica.find_table(name)
        if table is None:
            continue
        if is_kept(reader, table):
            note_kept(replica, table)
            continue
        # What this dump has brought, or begun to, before a stop stays.
        if checkpoint not in (table.parameters.get(CHECKPOINT), table.parameters.get(BEGUN)):
            drop_replicated(replica, table)
    load_tables(checkpoint, replica, dumped_tables)
    load_constraints(replica, reader.constraints())
    drop_outside(reader, replica)


def lacks_tables(reader: DumpReader, replica: Replica) -> bool:
    """Whether a replica does not have all that an incremental dump brings whole."""
    names = {dumped.table.name for dumped in reader.tables_anew()}
    tables = {name: replica.find_table(name) for name in reader.names_anew}
    return any(
        # Missing though the dump brings it, or there though the source has it no more.
        (table is None) == (name in names)
        or (table is not None and table.parameters.get(CHECKPOINT) != reader.paths.hive)
        for name, table in tables.items()
        if table is None or not is_kept(reader, table)
    )


def _begin(reader: DumpReader, replica: Replica) -> None:
    target = replica.names.target_database
    checkpoint = reader.paths.hive
    new = new_database(reader.database(), target, checkpoint)
    existing = replica.find_database()
    if existing is None:
        replica.metastore.create_database(new)
    elif existing.parameters.get(CHECKPOINT) != checkpoint:
        merged: Mapping[str, str] = {**existing.parameters, **new.parameters}
        replica.metastore.alter_database(target, replace(existing, parameters=merged))
