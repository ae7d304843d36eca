"""Named locks that all servers on one database respect (AUX_TABLE).

Hive also knows ``Initiator``, ``Cleaner``, ``HouseKeeper`` and ``TxnCleaner``, each held through a
whole turn of that daemon (TxnStore.MUTEX_KEY; docs/hive/transactions.md §18). They are not taken
here: a turn here is many transactions, each of which looks again at what it changes, so two daemons
at once only do something twice. That two of ours do not keep house at once, a lease sees to
(:func:`hms_bridge.cli.serve_daemons.housekeeper`). What must not happen twice is queueing a
compaction and beginning a rebuild; these locks are held wherever that is done.
"""

from __future__ import annotations

from enum import Enum

from sqlalchemy import Connection, select

from hms_bridge.backend.dialect import insert_if_missing
from hms_bridge.backend.schema.txn_tables import AUX_TABLE

_A = AUX_TABLE.c


class Mutex(Enum):
    """What only one may do at a time; Hive's keys, so that it also waits for us."""

    COMPACTION_SCHEDULER = "CompactionScheduler"
    MATERIALIZATION_REBUILD = "MaterializationRebuild"


def hold(connection: Connection, mutex: Mutex) -> None:
    """Wait for it, and hold it until the transaction ends."""
    row = select(_A.MT_KEY1).where(_A.MT_KEY1 == mutex.value).with_for_update()
    if connection.execute(row).first() is None:
        insert_if_missing(
            connection,
            AUX_TABLE,
            (_A.MT_KEY1, _A.MT_KEY2),
            {"MT_KEY1": mutex.value, "MT_KEY2": 0},
        )
        connection.execute(row).first()
