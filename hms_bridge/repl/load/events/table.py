"""Replay of tables: create, alter, rename, truncate, drop."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import WRITE_IDS_ABOVE, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.format.untrusted import checked_name
from hms_bridge.repl.load.events.context import ReplayContext
from hms_bridge.repl.load.events.place import moved_place
from hms_bridge.repl.load.events.truncate import truncate_directory
from hms_bridge.repl.load.scope import drop_replicated, note_kept
from hms_bridge.repl.load.whole_tables import new_table
from hms_bridge.repl.target_objects import (
    is_loaded,
    last_event_of,
    replay_environment,
    target_table,
)


def create_table(context: ReplayContext, event: DumpedEvent) -> None:
    """Create it if it is not there (a bootstrap may have brought it), with files if not ACID."""
    dumped = context.reader.event_table(event)
    replica = context.replica
    replica.note(dumped.table)
    table = replica.find_table(dumped.table.name)
    if table is None:
        replica.make_table(new_table(replica, dumped, event.id), dumped.table)
        table = replica.find_table(dumped.table.name)
    elif last_event_of(table.parameters) is None:
        raise ReplError(
            f"{event.where}: table {table.full_name} is on the target, and no load made it; its "
            "columns need not be the source's. To keep it, give it another name (repl open "
            f"{table.database_name} --definitions lets you), then load again. Else it goes: "
            + replica.bring_anew(table.name)
        )
    if table is not None:
        # Made by an earlier try, too, which may have been killed before it looked.
        if last_event_of(table.parameters) == event.id:
            replica.require_own_place(table, dumped.table)
        _begin_write_ids(context, table.name, dumped.table)
    if table is not None and replica.owns_files(table):
        replica.copy(dumped.files, table.storage.location, table.full_name)


def _begin_write_ids(context: ReplayContext, name: str, source: Table) -> None:
    """Those of a table that was made where writers of a dropped one may still come begin above
    theirs, and those of a name that had some before above these. Nothing where ids are counted:
    this try is not the first, or a bootstrap brought them.
    """
    last = source.parameters.get(WRITE_IDS_ABOVE, "")
    if last.isdecimal():
        ids = ValidWriteIdList(table=None, high_watermark=WriteId(int(last)))
        context.replica.begin_write_ids(name, ids)


def alter_table(context: ReplayContext, event: DumpedEvent) -> None:
    """Replace what the metastore knows of the table; the place of a managed one stays."""
    dumped = context.reader.event_table(event)
    table = context.table_or_gone(dumped.table.name, event)
    replica = context.replica
    if table is None or replica.is_newer(table.parameters, event.id):
        return
    replica.note(dumped.table)
    if table.type != dumped.table.type:
        raise ReplError(
            f"{event.where}: makes {table.full_name} a {dumped.table.type}, which is a "
            f"{table.type} here. " + replica.bring_anew(table.name)
        )
    new = target_table(
        dumped.table, replica.names.target_database, last_event=event.id, existing=table
    )
    place = moved_place(event, replica.names.external_base)
    if place is not None:
        new = replace(new, storage=replace(new.storage, location=place))
    replica.metastore.alter_table(
        replica.names.target_database, table.name, new, environment=replay_environment(new)
    )
    context.ahead.forget(table.name)


def rename_table(context: ReplayContext, event: DumpedEvent) -> None:
    """Rename it; nothing if the new name is there and the old one is not (done before)."""
    before, after = event.read(Payload).altered_tables()
    replica = context.replica
    if before.database_name != after.database_name:
        raise ReplError(
            f"{event.where}: moves {before.full_name} to another database ({after.full_name}). "
            + replica.begin_anew
        )
    old = replica.find_table(checked_name(before.name, "table"))
    if old is None or replica.is_newer(old.parameters, event.id):
        return
    if replica.find_table(checked_name(after.name, "table")) is not None:
        raise ReplError(
            f"{event.where}: {after.name} is there already beside {before.name}, which gets its "
            "name. " + replica.bring_anew(after.name)
        )
    new = target_table(after, replica.names.target_database, last_event=event.id, existing=old)
    replica.metastore.alter_table(
        replica.names.target_database, old.name, replace(new, name=after.name)
    )


def truncate_table(context: ReplayContext, event: DumpedEvent) -> None:
    """Empty the table, or all partitions of it, as the source's TRUNCATE did."""
    payload = event.read(Payload)
    table = context.table_or_gone(checked_name(payload.text("table"), "table"), event)
    if table is None or table.is_external:
        return
    write_id = payload.number("writeId")
    for directory in _directories(context, table):
        truncate_directory(context.replica.resolve(directory), table, write_id, event.where)


def _directories(context: ReplayContext, table: Table) -> tuple[str, ...]:
    if not table.is_partitioned:
        return (context.replica.table_root(table).uri,)
    partitions = context.replica.metastore.get_partitions(table.database_name, table.name)
    return tuple(
        partition.storage.location for partition in partitions if partition.storage.location
    )


def drop_table(context: ReplayContext, event: DumpedEvent) -> None:
    """Drop it with its files, unless it is of a later incarnation."""
    payload = event.read(Payload)
    replica = context.replica
    table = replica.find_table(checked_name(payload.text("table"), "table"))
    if table is not None and not replica.is_newer(table.parameters, event.id):
        replica.metastore.drop_table(replica.names.target_database, table.name)


def drop_renamed(context: ReplayContext, event: DumpedEvent) -> None:
    """Drop what its source renamed to a name outside of the scope, or what comes whole by the new
    one (Hive: DropTableHandler), unless it is of a later incarnation or no load made it."""
    before = event.read(Payload).table("tableObjBeforeJson")
    replica = context.replica
    table = replica.find_table(checked_name(before.name, "table"))
    if table is not None and not is_loaded(table):
        note_kept(replica, table)
    elif table is not None and not replica.is_newer(table.parameters, event.id):
        drop_replicated(replica, table)
