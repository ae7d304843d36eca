"""What ALTER does to column statistics: some go, and some are not to be believed any more.

Hive: HiveAlterHandler.deleteTableColumnStats and updateOrGetPartitionColumnStats; ObjectStore's
alterTable and alterPartitionNoTxn for transactional tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import statistics, statistics_state
from hms_bridge.catalog.found_partitions import StoredPartition
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.model.catalog import Column, Partition, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.statistics_state import (
    Parameters,
    is_believable,
    without_columns,
    without_trust,
)
from hms_bridge.service.statistics_updates import require_change_snapshot


def altered_table(
    connection: Connection, stored: StoredTable, after: Table, valid_write_ids: str | None
) -> Table:
    """The new table as it is stored: lost columns lose their statistics, and a write that this
    one did not see takes the trust away. Raises MetaError for a change of a transactional table's
    statistics that does not name its snapshot."""
    old = stored.table
    if not _has_all(old.storage.columns, after.storage.columns):
        lost = statistics.forget_lost_columns(connection, stored, after.storage.columns)
        if old.is_full_acid == after.is_full_acid:
            after = replace(after, parameters=without_columns(after.parameters, lost))
    if after.is_transactional and not old.is_transactional:
        return replace(after, parameters=without_trust(after.parameters))
    if not after.is_transactional or old.is_partitioned:
        return after
    parameters = _settled(old, after, valid_write_ids, what=after.full_name)
    return replace(after, parameters=parameters)


def settle_partitions_of(
    connection: Connection, stored: StoredTable, after: Table, *, is_cascade: bool
) -> None:
    """The partitions of a table whose columns changed, unless columns were only added."""
    old, new = stored.table.storage.columns, after.storage.columns
    is_prefix = new[: len(old)] == old
    if not stored.table.is_partitioned or (old == new if is_cascade else is_prefix):
        return
    keys = statistics.keys_of_partitions(connection, stored)
    statistics_state.distrust_columns(
        connection, statistics.forget_lost_columns_of_partitions(connection, keys, new)
    )


def altered_partition(
    connection: Connection,
    table: Table,
    stored: StoredPartition,
    after: Partition,
    valid_write_ids: str | None,
) -> Partition:
    """As :func:`altered_table`."""
    old, columns = stored.partition, after.storage.columns
    if not _has_all(old.storage.columns, columns):
        lost = statistics.forget_lost_columns_of_partitions(connection, [stored.id], columns)
        names = lost.get(stored.id, frozenset())
        after = replace(after, parameters=without_columns(after.parameters, names))
    if not table.is_transactional:
        return after
    what = f"{table.full_name} {stored.name}"
    parameters = _settled(old, after, valid_write_ids, what=what)
    return replace(after, parameters=parameters)


def _settled(
    old: Table | Partition, new: Table | Partition, valid_write_ids: str | None, *, what: str
) -> Parameters:
    """What the new one's parameters say of trust, after a write that saw this snapshot. Raises
    MetaError for a change of it that does not name its snapshot."""
    require_change_snapshot(
        what,
        old.parameters,
        new.parameters,
        WriteId(new.write_id),
        valid_write_ids,
        is_of_columns=False,
    )
    if valid_write_ids is None or new.write_id <= 0:
        return new.parameters
    if is_believable(new.parameters, old.write_id, valid_write_ids, is_writer=True):
        return new.parameters
    return without_trust(new.parameters)


def _has_all(old: Sequence[Column], new: Sequence[Column]) -> bool:
    """Whether the old columns are all there by name and type
    (MetaStoreServerUtils.columnsIncludedByNameType)."""
    there = {(column.name.lower(), column.type.lower()) for column in new}
    return all((column.name.lower(), column.type.lower()) in there for column in old)
