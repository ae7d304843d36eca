"""Tables that a dump brings whole: made in their order, copied together, whole one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from hms_bridge.errors import MetaError, ReplError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import CHECKPOINT
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.format.reader import DumpedPartition, DumpedTable
from hms_bridge.repl.load.copy import CopyGroup, CopyPlace
from hms_bridge.repl.load.partitions import (
    add_partitions,
    batches_of,
    known_partitions,
    places_of,
)
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.target_objects import (
    AS_ON_SOURCE,
    BEGUN,
    last_event_of,
    target_table,
)


def write_ids_of(dumped: DumpedTable) -> ValidWriteIdList:
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


def load_tables(checkpoint: str, replica: Replica, dumped_tables: Iterable[DumpedTable]) -> None:
    """Make tables in their order and copy their files in one go; each is whole when its own are
    there, views come last. ``checkpoint``: the dump that they come from.

    Stopped anywhere, it goes on from there. Raises ReplError for a table of somebody else.
    """
    views: list[DumpedTable] = []

    def groups() -> Iterator[CopyGroup]:
        for dumped in dumped_tables:
            if dumped.table.is_any_view:
                views.append(dumped)
            else:
                yield from _groups_of(checkpoint, replica, dumped)

    replica.copy_groups(groups())
    for dumped in views:
        replica.copy_groups(_groups_of(checkpoint, replica, dumped))


def _groups_of(checkpoint: str, replica: Replica, dumped: DumpedTable) -> Iterator[CopyGroup]:
    """What is to be copied of a table, which is made now; nothing if it is whole already."""
    replica.note(dumped.table)
    table = replica.find_table(dumped.table.name)
    if table is not None and table.parameters.get(CHECKPOINT) == checkpoint:
        return
    table = _begun_table(checkpoint, replica, dumped, table)
    yield from _TableLoad(checkpoint, replica, dumped, table).groups()


def _begun_table(
    checkpoint: str, replica: Replica, dumped: DumpedTable, table: Table | None
) -> Table:
    """The target's table, made if it is not there. Raises ReplError for one of somebody else."""
    if table is not None and last_event_of(table.parameters) != dumped.spec.last_event_id:
        raise ReplError(
            f"table {table.full_name} is on the target, and this load did not make it; drop it, "
            "then load again"
        )
    if table is None or BEGUN not in table.parameters:
        new = new_table(replica, dumped, dumped.spec.last_event_id)
        _make(checkpoint, replica, new, dumped.table, is_there=table is not None)
        table = replica.metastore.get_table(replica.names.target_database, dumped.table.name)
    replica.require_own_place(table, dumped.table)
    return table


def _make(checkpoint: str, replica: Replica, new: Table, source: Table, *, is_there: bool) -> None:
    """Write ids that its name has would stand for the source's: they are of a statement that never
    made its table, or of a table that somebody else has dropped. The drop of a table is what
    forgets them. The one that is made for that is not begun: a load that is killed before the drop
    goes on with it."""
    if not is_there and new.is_transactional and _has_write_ids(replica, new.name):
        replica.make_table(new, source)
        is_there = True
    if is_there:
        replica.metastore.drop_table(new.database_name, new.name, is_data_deleted=False)
    # By this a next try knows the table as its own (replace_tables).
    begun = {**new.parameters, BEGUN: checkpoint}
    replica.make_table(replace(new, parameters=begun), source)


def _has_write_ids(replica: Replica, name: str) -> bool:
    database = replica.names.target_database
    return replica.metastore.get_max_allocated_write_id(database, name) > 0


class _TableLoad:
    """A table whose files are on their way. Its partitions are added batch by batch, each once its
    files are there, so that none ever stands there half full; with the last batch it is whole."""

    def __init__(
        self, checkpoint: str, replica: Replica, dumped: DumpedTable, table: Table
    ) -> None:
        self._checkpoint = checkpoint
        self._replica = replica
        self._dumped = dumped
        self._table = table
        self._batches = tuple(batches_of(dumped.partitions)) or ((),)
        self._missing = len(self._batches)

    def groups(self) -> Iterator[CopyGroup]:
        """The files, with those of each batch of partitions together."""
        replica, table = self._replica, self._table
        for batch in self._batches:
            known = known_partitions(replica, table, batch) if batch else {}
            places: tuple[CopyPlace, ...] = ()
            if replica.owns_files(table):
                own = self._dumped.files if batch is self._batches[0] else ()
                places = replica.places(own, table.storage.location, table.full_name)
                places += places_of(replica, table, batch, known)
            yield CopyGroup(places=places, publish=partial(self._publish, batch, known))

    def _publish(
        self, batch: tuple[DumpedPartition, ...], known: Mapping[tuple[str, ...], Partition]
    ) -> None:
        last_event = self._dumped.spec.last_event_id
        add_partitions(self._replica, self._table, batch, known, last_event)
        self._missing -= 1
        if self._missing:
            return
        if self._dumped.table.is_transactional:
            names = tuple(partition.name for partition in self._dumped.partitions)
            self._replica.begin_write_ids(
                self._table.name,
                write_ids_of(self._dumped),
                names if self._table.is_partitioned else None,
            )
        _finish_table(self._replica, self._table, self._checkpoint)


def new_table(replica: Replica, dumped: DumpedTable, last_event: EventId) -> Table:
    """A table as it is made on the target."""
    return target_table(
        dumped.table,
        replica.names.target_database,
        last_event=last_event,
        external_base=replica.names.external_base,
    )


def _finish_table(replica: Replica, table: Table, checkpoint: str) -> None:
    """The table says which dump it came from: whole, so that a next try leaves it alone."""
    parameters = {key: value for key, value in table.parameters.items() if key != BEGUN}
    done = replace(table, parameters={**parameters, CHECKPOINT: checkpoint})
    replica.metastore.alter_table(table.database_name, table.name, done, environment=AS_ON_SOURCE)
