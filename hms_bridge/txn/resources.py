"""What dropping and renaming databases, tables and partitions does to the transaction tables
(Hive: AcidEventListener, OnRenameFunction; docs/hive/transactions.md §19).

For transactional tables of the default catalog only: these tables have no column for the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, delete, select, update

from hms_bridge.backend.batches import batches
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_METRICS_CACHE,
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MIN_HISTORY_WRITE_ID,
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.errors import MetaError
from hms_bridge.model.target import TableName
from hms_bridge.model.txn import TxnState


@dataclass(frozen=True, slots=True)
class _Named:
    """A table whose rows name a database, a table and maybe a partition."""

    table: Table
    prefix: str

    @property
    def database(self) -> Column[Any]:
        short = self.table is HIVE_LOCKS
        return self.table.c[f"{self.prefix}_{'DB' if short else 'DATABASE'}"]

    @property
    def name(self) -> Column[Any]:
        return self.table.c[f"{self.prefix}_TABLE"]

    @property
    def partition(self) -> Column[Any] | None:
        return self.table.c.get(f"{self.prefix}_PARTITION")


# Locks, WRITE_SET and MIN_HISTORY_WRITE_ID stay: they end with their transactions. Until then a
# table that is made there again waits, or is in conflict, where it need not.
_FORGOTTEN = (
    _Named(TXN_COMPONENTS, "TC"),
    _Named(COMPLETED_TXN_COMPONENTS, "CTC"),
    _Named(COMPACTION_QUEUE, "CQ"),
    _Named(COMPLETED_COMPACTIONS, "CC"),
    _Named(COMPACTION_METRICS_CACHE, "CMC"),
)
# Before all others, and the counter first: who is giving a write id holds its row, and what he
# writes down meanwhile is there to be found only once that is waited for.
_WRITE_IDS = (_Named(NEXT_WRITE_ID, "NWI"), _Named(TXN_TO_WRITE_ID, "T2W"))
_RENAMED = (
    *_WRITE_IDS,
    *_FORGOTTEN,
    _Named(HIVE_LOCKS, "HL"),
    _Named(WRITE_SET, "WS"),
    _Named(MIN_HISTORY_WRITE_ID, "MH"),
)


def forget_database(connection: Connection, database: str) -> None:
    """The database was dropped."""
    for named in (*_WRITE_IDS, *_FORGOTTEN):
        connection.execute(delete(named.table).where(named.database == database.lower()))


def forget_table(connection: Connection, database: str, table: str) -> None:
    """The table was dropped."""
    gone = TableName.lower(database, table)
    for named in (*_WRITE_IDS, *_FORGOTTEN):
        connection.execute(delete(named.table).where(_is_of(named, gone)))


def forget_partitions(
    connection: Connection, database: str, table: str, names: Sequence[str]
) -> None:
    """Partitions were dropped.

    What transactions wrote there stays on record until they commit, or a cleaner has looked for it:
    a late writer may still bring files, and the partition be made again. Hive forgets it
    (CleanupRecords).
    """
    of_table = TableName.lower(database, table)
    for named in _FORGOTTEN:
        if named.table is TXN_COMPONENTS:
            continue
        for batch in batches(names):
            gone = named.table.c[f"{named.prefix}_PARTITION"].in_(batch)
            connection.execute(delete(named.table).where(_is_of(named, of_table), gone))


def rename_table(connection: Connection, old: TableName, new: TableName) -> None:
    """The table has another name, or lies in another database. Raises MetaError if write ids that
    are not forgotten were given under that name."""
    before = TableName.lower(old.database, old.table)
    after = TableName.lower(new.database, new.table)
    if before == after:
        return
    _clear_name(connection, before, after)
    for named in _RENAMED:
        connection.execute(
            update(named.table)
            .where(_is_of(named, before))
            .values({named.database: after.database, named.name: after.table})
        )


def _clear_name(connection: Connection, before: TableName, after: TableName) -> None:
    """Write ids are counted under names that no table has, too: of one that was not made in the
    end, or for who did not know that it was gone."""
    counter, owners = _WRITE_IDS
    counted = select(counter.table).with_for_update()
    if connection.execute(counted.where(_is_of(counter, after))).first() is None:
        return
    if connection.execute(counted.where(_is_of(counter, before))).first() is None:
        return
    written = select(TXN_TO_WRITE_ID.c.T2W_TXNID).where(_is_of(owners, after))
    writers = connection.scalars(written.order_by(TXN_TO_WRITE_ID.c.T2W_TXNID).limit(10)).all()
    if writers:
        named = ", ".join(f"txnid:{txn_id}" for txn_id in writers)
        raise MetaError(
            f"{before.database}.{before.table} cannot be called {after.database}.{after.table}: "
            f"write ids were given under that name, of a table that is not there ({named}); take "
            "another name, or try again when these transactions have ended and are forgotten"
        )
    connection.execute(delete(counter.table).where(_is_of(counter, after)))


def _is_of(named: _Named, table: TableName) -> ColumnElement[bool]:
    return and_(named.database == table.database, named.name == table.table)


def _widen_aborted(connection: Connection, here: ColumnElement[bool]) -> None:
    """What was aborted in a partition that goes from its place is of the whole table: there a
    cleaner looks into every directory before it is forgotten."""
    aborted = select(TXNS.c.TXN_ID).where(TXNS.c.TXN_STATE == TxnState.ABORTED.value)
    written = and_(here, TXN_COMPONENTS.c.TC_TXNID.in_(aborted))
    connection.execute(update(TXN_COMPONENTS).where(written).values(TC_PARTITION=None))


def rename_partition(connection: Connection, database: str, table: str, old: str, new: str) -> None:
    """The partition has other values; names as in ``a=1/b=x``."""
    if old == new:
        return
    for named in _RENAMED:
        partition = named.partition
        if partition is not None:
            here = and_(_is_of(named, TableName.lower(database, table)), partition == old)
            if named.table is TXN_COMPONENTS:
                _widen_aborted(connection, here)
            connection.execute(update(named.table).where(here).values({partition: new}))
