"""Load a whole database: objects, files, then the write ids that make the rows visible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hms_bridge.errors import MetaError, ReplError
from hms_bridge.model.catalog import Database, Table
from hms_bridge.model.counted import counted
from hms_bridge.model.properties import CHECKPOINT
from hms_bridge.model.txn import TableWriteIdState
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.format.object_metadata import SCOPE_ALL, SCOPE_METADATA
from hms_bridge.repl.format.passed_kinds import refusal
from hms_bridge.repl.format.reader import DumpedPartition, DumpedTable, DumpReader
from hms_bridge.repl.load.constraints import load_constraints
from hms_bridge.repl.load.functions import put_function
from hms_bridge.repl.load.own_source import METASTORE_HINT
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.scope import drop_outside, drop_replicated, is_kept, note_kept
from hms_bridge.repl.target_objects import (
    AS_ON_SOURCE,
    BEGUN,
    last_event_of,
    new_database,
    target_partition,
    target_table,
)

_PARTITIONS_AT_ONCE = 1000


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
        _write_ids(dumped)


def _write_ids(dumped: DumpedTable) -> ValidWriteIdList:
    """The table's write-id list. Raises ReplError if it has none, or open ids: Hive would load
    such a table and lose the rows of the open transactions when they commit."""
    text = dumped.spec.valid_write_ids
    if text is None:
        raise ReplError(
            f"{dumped.table.full_name} is transactional, but the dump has no write-id list for "
            "it, so its rows would stay unseen; dump again"
        )
    try:
        ids = ValidWriteIdList.parse(text)
    except MetaError as error:
        raise ReplError(f"{dumped.table.full_name}: {error}; dump again") from error
    if ids.open_ids:
        raise ReplError(
            f"write ids {', '.join(map(str, ids.open_ids))} of {dumped.table.full_name} were open "
            "when it was dumped: their rows would be lost. Make a new bootstrap dump once those "
            "transactions have ended"
        )
    return ids


def load_bootstrap(reader: DumpReader, replica: Replica, names: tuple[str, ...]) -> None:
    """Bring the database to the dump's state. Stopped anywhere, it goes on from there.

    Rows of a transactional table appear at once, when its write-id state is set after its files.
    """
    _begin(reader, replica)
    views = []
    for name in names:
        dumped = reader.table(name)
        if dumped.table.is_any_view:
            views.append(dumped)
        else:
            _load_table(reader, replica, dumped)
    for dumped in views:
        _load_table(reader, replica, dumped)
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
    other names that it tells go. Stopped anywhere, it goes on from there."""
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
    for dumped in sorted(dumped_tables, key=lambda entry: entry.table.is_any_view):
        _load_table(reader, replica, dumped)
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


def _load_table(reader: DumpReader, replica: Replica, dumped: DumpedTable) -> None:
    replica.note(dumped.table)
    checkpoint = reader.paths.hive
    target = replica.names.target_database
    table = replica.find_table(dumped.table.name)
    if table is not None and table.parameters.get(CHECKPOINT) == checkpoint:
        return
    if table is None:
        new = _new_table(replica, dumped)
        # By this a next try knows the table as its own (replace_tables).
        begun = {**new.parameters, BEGUN: checkpoint}
        replica.metastore.create_table(replace(new, parameters=begun))
        table = replica.metastore.get_table(target, dumped.table.name)
    elif last_event_of(table.parameters) != dumped.spec.last_event_id:
        raise ReplError(
            f"table {table.full_name} is on the target, and this load did not make it; drop it, "
            "then load again"
        )
    replica.require_own_place(table, dumped.table)
    if replica.owns_files(table):
        replica.copy(dumped.files, table.storage.location, table.full_name)
    for start in range(0, len(dumped.partitions), _PARTITIONS_AT_ONCE):
        _load_partitions(
            replica, dumped, table, dumped.partitions[start : start + _PARTITIONS_AT_ONCE]
        )
    if dumped.table.is_transactional:
        _set_write_ids(replica, dumped)
    _finish_table(replica, table, checkpoint)


def _new_table(replica: Replica, dumped: DumpedTable) -> Table:
    return target_table(
        dumped.table,
        replica.names.target_database,
        last_event=dumped.spec.last_event_id,
        external_base=replica.names.external_base,
    )


def _finish_table(replica: Replica, table: Table, checkpoint: str) -> None:
    """The table says which dump it came from: whole, so that a next try leaves it alone."""
    parameters = {key: value for key, value in table.parameters.items() if key != BEGUN}
    done = replace(table, parameters={**parameters, CHECKPOINT: checkpoint})
    replica.metastore.alter_table(table.database_name, table.name, done, environment=AS_ON_SOURCE)


def _load_partitions(
    replica: Replica, dumped: DumpedTable, table: Table, parts: tuple[DumpedPartition, ...]
) -> None:
    """Files first where the place is known, so that a partition never stands there half full."""
    if replica.owns_files(table):
        replica.copy_parts(parts, replica.table_root(table))
    known = {
        partition.values
        for partition in replica.metastore.get_partitions_by_names(
            table.database_name, table.name, [part.name for part in parts]
        )
    }
    new = [
        target_partition(
            part.partition,
            table.database_name,
            table=table,
            last_event=dumped.spec.last_event_id,
            external_base=replica.names.external_base,
        )
        for part in parts
        if part.partition.values not in known
    ]
    if new:
        replica.metastore.add_partitions(
            table.database_name, table.name, new, is_if_not_exists=True
        )


def _set_write_ids(replica: Replica, dumped: DumpedTable) -> None:
    names = replica.names
    ids = replace(_write_ids(dumped), table=f"{names.target_database}.{dumped.table.name}")
    replica.metastore.repl_table_write_id_state(
        TableWriteIdState(
            valid_write_ids=ids.format(),
            user=names.user,
            host=names.host,
            database_name=names.target_database,
            table_name=dumped.table.name,
            partition_names=tuple(part.name for part in dumped.partitions),
        )
    )
