"""What DROP and RENAME do to the transaction tables, which name their objects instead of keys.

Source: Hive's AcidEventListener (facts/metastore §2.16). Names are lower case; a partition is
named exactly. Locks and write sets of dropped objects are left to housekeeping.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, delete, true, update

from hms_bridge.backend.batches import BATCH_MAX
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
    WRITE_SET,
)


@dataclass(frozen=True, slots=True)
class _Naming:
    """The columns of one table that name an object; ``partition`` is None where there is none."""

    database: Column[Any]
    table: Column[Any]
    partition: Column[Any] | None = None


_COMPONENTS = (
    _Naming(*(TXN_COMPONENTS.c[n] for n in ("TC_DATABASE", "TC_TABLE", "TC_PARTITION"))),
    _Naming(
        *(COMPLETED_TXN_COMPONENTS.c[n] for n in ("CTC_DATABASE", "CTC_TABLE", "CTC_PARTITION"))
    ),
    _Naming(*(COMPACTION_QUEUE.c[n] for n in ("CQ_DATABASE", "CQ_TABLE", "CQ_PARTITION"))),
    _Naming(*(COMPLETED_COMPACTIONS.c[n] for n in ("CC_DATABASE", "CC_TABLE", "CC_PARTITION"))),
    _Naming(
        *(COMPACTION_METRICS_CACHE.c[n] for n in ("CMC_DATABASE", "CMC_TABLE", "CMC_PARTITION"))
    ),
)
"""What a drop forgets of an object."""

_WRITE_IDS = (
    _Naming(TXN_TO_WRITE_ID.c.T2W_DATABASE, TXN_TO_WRITE_ID.c.T2W_TABLE),
    _Naming(NEXT_WRITE_ID.c.NWI_DATABASE, NEXT_WRITE_ID.c.NWI_TABLE),
)
"""What a drop of a whole table forgets too: a new table of that name starts at 1 again."""

_RENAMED_ONLY = (
    _Naming(HIVE_LOCKS.c.HL_DB, HIVE_LOCKS.c.HL_TABLE, HIVE_LOCKS.c.HL_PARTITION),
    _Naming(WRITE_SET.c.WS_DATABASE, WRITE_SET.c.WS_TABLE, WRITE_SET.c.WS_PARTITION),
)

_ALL = (
    *_COMPONENTS,
    *_WRITE_IDS,
    *_RENAMED_ONLY,
    _Naming(MIN_HISTORY_WRITE_ID.c.MH_DATABASE, MIN_HISTORY_WRITE_ID.c.MH_TABLE),
)


def forget_database(connection: Connection, database: str) -> None:
    """A database was dropped."""
    _forget(connection, (*_COMPONENTS, *_WRITE_IDS), lambda n: n.database == database)


def forget_table(connection: Connection, database: str, table: str) -> None:
    """A transactional table was dropped."""
    _forget(
        connection,
        (*_COMPONENTS, *_WRITE_IDS),
        lambda n: (n.database == database) & (n.table == table),
    )


def forget_partitions(
    connection: Connection, database: str, table: str, names: Sequence[str]
) -> None:
    """Partitions of a transactional table were dropped."""
    for start in range(0, len(names), BATCH_MAX):
        piece = names[start : start + BATCH_MAX]
        _forget(
            connection,
            _COMPONENTS,
            lambda n, piece=piece: (
                (n.database == database) & (n.table == table) & _partition_is(n, piece)
            ),
        )


def _partition_is(naming: _Naming, names: Collection[str]) -> ColumnElement[bool]:
    return true() if naming.partition is None else naming.partition.in_(names)


def _forget(connection: Connection, namings: Sequence[_Naming], condition: Any) -> None:
    for naming in namings:
        connection.execute(delete(naming.database.table).where(condition(naming)))


def rename_table(connection: Connection, old: tuple[str, str], new: tuple[str, str]) -> None:
    """A table (database, name) got another name, or went to another database."""
    if old == new:
        return
    for naming in _ALL:
        connection.execute(
            update(naming.database.table)
            .where(naming.database == old[0], naming.table == old[1])
            .values({naming.database: new[0], naming.table: new[1]})
        )


def rename_partition(connection: Connection, database: str, table: str, old: str, new: str) -> None:
    """A partition got other values."""
    for naming in _ALL:
        if old == new or naming.partition is None:
            continue
        connection.execute(
            update(naming.database.table)
            .where(naming.database == database, naming.table == table, naming.partition == old)
            .values({naming.partition: new})
        )
