"""Replay of partitions: add, alter, rename, truncate, drop."""

from __future__ import annotations

from dataclasses import replace

from changemanager.durable import settle_names
from changemanager.filesystem.volume import FileKind, Placement
from changemanager.location import Location, list_tree
from hms_bridge.errors import MetaError, ReplError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.partition_name import partition_name
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.reader import DumpedEvent, DumpedPartition
from hms_bridge.repl.format.untrusted import checked_name, checked_partition
from hms_bridge.repl.load.events.context import ReplayContext
from hms_bridge.repl.load.events.place import moved_place
from hms_bridge.repl.load.events.truncate import truncate_directory
from hms_bridge.repl.load.partitions import (
    add_partitions,
    batches_of,
    known_partitions,
    places_of,
)
from hms_bridge.repl.target_objects import replay_environment, target_partition


def ensure_partition(
    context: ReplayContext, event: DumpedEvent, table: Table, part: DumpedPartition
) -> Partition:
    """The target's partition, added if it is not there."""
    replica = context.replica
    existing = replica.find_partition(table, part.name)
    if existing is not None:
        return existing
    add_partitions(replica, table, [part], {}, event.id)
    return replica.metastore.get_partition(
        replica.names.target_database, table.name, list(part.partition.values)
    )


def add_partition(context: ReplayContext, event: DumpedEvent) -> None:
    """Add those that are not there, with their files where the table is not transactional."""
    dumped = context.reader.event_table(event)
    table = context.table_or_gone(dumped.table.name, event)
    if table is None:
        return
    for batch in batches_of(dumped.partitions):
        known = known_partitions(context.replica, table, batch)
        if not table.is_external:
            context.replica.copy_places(places_of(context.replica, table, batch, known))
        add_partitions(context.replica, table, batch, known, event.id)


def alter_partition(context: ReplayContext, event: DumpedEvent) -> None:
    """Replace what the metastore knows of partitions; places of managed ones stay."""
    dumped = context.reader.event_table(event)
    table = context.table_or_gone(dumped.table.name, event)
    if table is None:
        return
    replica = context.replica
    place = moved_place(event, replica.names.external_base)
    changed = []
    for part in dumped.partitions:
        existing = replica.find_partition(table, part.name)
        if existing is not None and not replica.is_newer(existing.parameters, event.id):
            new = target_partition(
                part.partition,
                replica.names.target_database,
                table=table,
                last_event=event.id,
                existing=existing,
            )
            if place is not None:
                new = replace(new, storage=replace(new.storage, location=place))
            changed.append(new)
    if changed:
        replica.metastore.alter_partitions(
            replica.names.target_database,
            table.name,
            changed,
            environment=replay_environment(table),
        )
        context.ahead.forget(table.name)


def rename_partition(context: ReplayContext, event: DumpedEvent) -> None:
    """Give a partition other values: its files go to the new place, then the names change.

    Between dropping the old name and adding the new one the rows are not seen; they are never
    seen twice. Repeated after a stop it goes on where it was.
    """
    payload = event.read(Payload)
    table = context.table_or_gone(checked_name(payload.text("table"), "table"), event)
    if table is None:
        return
    after = payload.partition("partitionObjAfterJson")
    old_name = _name_of(table, payload.partition_values("keyValues"), event)
    new_name = checked_partition(partition_name(table.partition_columns, after.values))
    replica = context.replica
    old = replica.find_partition(table, old_name)
    part = DumpedPartition(name=new_name, partition=after, files=())
    if old is not None and old_name != new_name:
        if replica.find_partition(table, new_name) is not None:
            raise ReplError(
                f"{event.where}: {table.full_name}/{new_name} is there already beside {old_name}, "
                "which gets its name. " + replica.bring_anew(table.name)
            )
        if not table.is_external and old.storage.location is not None:
            _transfer(
                replica.resolve(old.storage.location),
                replica.table_root(table).child(new_name),
            )
        replica.metastore.drop_partitions(
            replica.names.target_database, table.name, [old_name], is_if_exists=True
        )
    ensure_partition(context, event, table, part)


def truncate_partition(context: ReplayContext, event: DumpedEvent) -> None:
    """Empty partitions, as the source's TRUNCATE did."""
    payload = event.read(Payload)
    table = context.table_or_gone(checked_name(payload.text("table"), "table"), event)
    if table is None or table.is_external:
        return
    for values in _truncated(payload):
        partition = context.replica.find_partition(table, _name_of(table, values, event))
        if partition is not None and partition.storage.location is not None:
            truncate_directory(
                context.replica.resolve(partition.storage.location),
                table,
                payload.number("writeId"),
                event.where,
            )


def _truncated(payload: Payload) -> tuple[dict[str, str], ...]:
    """ALTER_PARTITIONS names partitions in a list, ALTER_PARTITION one by its values: so do Hive
    before 4.1, and 4.2 with hive.metastore.alterPartitions.notification.v2.enabled=false."""
    listed = payload.objects("partitions")
    return listed or (payload.partition_values("keyValues"),)


def drop_partition(context: ReplayContext, event: DumpedEvent) -> None:
    """Drop partitions with their files, unless they are of a later incarnation."""
    payload = event.read(Payload)
    table = context.replica.find_table(checked_name(payload.text("table"), "table"))
    if table is None:
        return
    names = []
    for values in payload.objects("partitions"):
        name = _name_of(table, values, event)
        existing = context.replica.find_partition(table, name)
        if existing is not None and not context.replica.is_newer(existing.parameters, event.id):
            names.append(name)
    if names:
        context.replica.metastore.drop_partitions(
            context.replica.names.target_database, table.name, names, is_if_exists=True
        )


def _name_of(table: Table, values: dict[str, str], event: DumpedEvent) -> str:
    by_column = {key.lower(): value for key, value in values.items()}
    try:
        ordered = [by_column[column.name.lower()] for column in table.partition_columns]
        return checked_partition(partition_name(table.partition_columns, ordered))
    except (KeyError, MetaError):
        raise ReplError(
            f"{event.where}: {values} are no values for the partition columns of {table.full_name}"
        ) from None


def _transfer(old: Location, new: Location) -> None:
    """Give every file of a directory a name below another one, on the same file system.

    The new names are on the disk when this returns: the drop of the old ones comes next.
    """
    files = [listed.path for listed in list_tree(old) if listed.kind is FileKind.FILE]
    directories = dict.fromkeys(new.child(path).parent.path for path in files)
    for directory in directories:
        new.volume.make_directory(directory)
    for path in files:
        source, target = old.child(path), new.child(path)
        # Of an earlier try: where a file system links or copies, the old name stays.
        if target.status() is not None:
            if target.checksum() != source.checksum():
                raise ReplError(
                    f"{target.uri} is there with other content than {source.uri}; move it away, "
                    "then load again"
                )
            continue
        if target.volume.place(source.path, target.path) is Placement.REFUSED:
            raise ReplError(f"{source.uri} and {target.uri} are on two devices; move them to one")
    for directory in directories:
        settle_names(new.volume, directory)
