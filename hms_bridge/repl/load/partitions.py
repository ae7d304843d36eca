"""Partitions that come with their files: those first, so that none ever stands there half full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.reader import DumpedPartition
from hms_bridge.repl.load.copy import CopyPlace
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.target_objects import target_partition

_AT_ONCE = 1000


def batches_of(
    parts: tuple[DumpedPartition, ...],
) -> Iterator[tuple[DumpedPartition, ...]]:
    """As many as a metastore is asked for at once; none for none."""
    for start in range(0, len(parts), _AT_ONCE):
        yield parts[start : start + _AT_ONCE]


def known_partitions(
    replica: Replica, table: Table, parts: Sequence[DumpedPartition]
) -> Mapping[tuple[str, ...], Partition]:
    """Those of a batch that the target has, by their values."""
    names = [part.name for part in parts]
    partitions = replica.metastore.get_partitions_by_names(table.database_name, table.name, names)
    return {partition.values: partition for partition in partitions}


def places_of(
    replica: Replica,
    table: Table,
    parts: Sequence[DumpedPartition],
    known: Mapping[tuple[str, ...], Partition],
) -> tuple[CopyPlace, ...]:
    """Where their files go: below the table's directory, unless the target's is elsewhere. Raises
    ReplError for files without a place."""
    places: list[CopyPlace] = []
    for part in parts:
        if not part.files:
            continue
        there = known.get(part.partition.values)
        if there is None:
            places.append((part.files, replica.table_root(table).child(part.name)))
        else:
            what = f"{table.full_name}/{part.name}"
            places += replica.places(part.files, there.storage.location, what)
    return tuple(places)


def add_partitions(
    replica: Replica,
    table: Table,
    parts: Sequence[DumpedPartition],
    known: Mapping[tuple[str, ...], Partition],
    last_event: EventId,
) -> None:
    """Make those of a batch that are not known."""
    new = [
        target_partition(
            part.partition,
            table.database_name,
            table=table,
            last_event=last_event,
            external_base=replica.names.external_base,
        )
        for part in parts
        if part.partition.values not in known
    ]
    if new:
        replica.metastore.add_partitions(
            table.database_name, table.name, new, is_if_not_exists=True
        )
