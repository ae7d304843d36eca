"""The scope of tables of a replica, and what a load drops because of it.

A real Hive drops every table of the target that is outside of a changed scope, whoever made it
(ReplLoadTask.dropTablesExcludedInReplScope; docs/hive/replication.md §34). Here only what a load
made goes; of two that may be meant, the one that keeps data is taken.
"""

from __future__ import annotations

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database, Table
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.format.reader import DumpReader
from hms_bridge.repl.load.replica import Replica, ReplicaNames
from hms_bridge.repl.remedies import begin_anew
from hms_bridge.repl.target_objects import SCOPE, is_loaded, noted_scope


def require_scope(names: ReplicaNames, reader: DumpReader, database: Database) -> None:
    """Raises ReplError if an incremental dump goes on from another scope than the replica has: what
    a dump between brought whole, or dropped, would be missing or stay, and no event names it."""
    noted = noted_scope(database.parameters, names.source_database)
    # A dump of Hive does not say from which scope it goes on where that was changed.
    is_known = reader.has_manifest or not reader.metadata.is_scope_modified
    before = reader.scope_note.before
    if noted is None or not is_known:
        return
    if noted.patterns_text not in (reader.scope.patterns_text, before.patterns_text):
        raise ReplError(
            f"database {database.name} has {_words(noted)}, and {reader.paths.root} goes on from "
            f"{_words(before)}: a dump between was loaded into another replica, or this one was "
            "restored. " + begin_anew(names.source_database, names.target_database)
        )


def lacks_scope(reader: DumpReader, replica: Replica) -> bool:
    """Whether a replica has not noted the scope that a dump gives it. It may stand at the dump's
    event all the same, if the change brings no table."""
    database = replica.find_database()
    source = replica.names.source_database
    noted = None if database is None else noted_scope(database.parameters, source)
    return noted is not None and noted.patterns_text != reader.scope.patterns_text


def refuse_foreign(reader: DumpReader, replica: Replica) -> None:
    """Raises ReplError for a table that comes into the scope where the replica has one of the name
    that no load made; before anything is changed."""
    brought = {dumped.table.name for dumped in reader.tables_anew()}
    for name in sorted(reader.scope_note.names & brought):
        table = replica.find_table(name)
        if table is not None and not is_loaded(table):
            raise ReplError(
                f"{reader.paths.root} brings {name}, which is new in the scope, but table "
                f"{table.full_name} is on the target, and no load made it. To keep it, give it "
                f"another name (repl open {table.database_name} --definitions lets you), then load "
                "again. Else it goes: " + replica.bring_anew(name)
            )


def is_kept(reader: DumpReader, table: Table) -> bool:
    """Whether a table stays although its name is named as gone: nobody asked for that name, and no
    load made what is called so here."""
    return table.name in reader.scope_note.names and not is_loaded(table)


def drop_outside(reader: DumpReader, replica: Replica) -> None:
    """After a dump of Hive whose scope was changed: drop what is outside of it and what a load
    made. Dumps of ours name what goes."""
    scope = reader.scope
    if reader.has_manifest or not reader.metadata.is_scope_modified or scope.is_whole_database:
        return
    target = replica.names.target_database
    for name in replica.metastore.get_tables(target):
        table = None if scope.contains(name) else replica.find_table(name)
        if table is None:
            continue
        if is_loaded(table):
            drop_replicated(replica, table)
        else:
            note_kept(replica, table)


def drop_replicated(replica: Replica, table: Table) -> None:
    """Drop a table that a load made. Data of an external one stays, also with
    external.table.purge: nothing here would bring it again."""
    replica.metastore.drop_table(
        replica.names.target_database, table.name, is_data_deleted=not table.is_external
    )


def note_kept(replica: Replica, table: Table) -> None:
    """Say that a table outside of the scope stays."""
    replica.add_note(
        f"table {table.full_name} is outside of what is replicated and stays: no load made it, or "
        "an ALTER TABLE took the mark of it (repl.last.id) away; drop it if nobody wants it"
    )


def scope_parameter(reader: DumpReader) -> dict[str, str | None]:
    """What a replica notes with the end of a load."""
    return {SCOPE: reader.scope.patterns_text or None}


def _words(scope: ReplScope) -> str:
    patterns = scope.patterns_text
    return f"the tables {patterns}" if patterns else "all tables"
