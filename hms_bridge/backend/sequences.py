"""Numbers that all servers on one database share; each is taken under a row lock.

The lock is held until the transaction ends. So take a number last, and in this order: lock id,
compaction id, event id, SEQUENCE_TABLE.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Connection, column, insert, table

from hms_bridge.backend.dialect import take_from_counter
from hms_bridge.backend.schema.txn_tables import (
    NEXT_COMPACTION_QUEUE_ID,
    NEXT_LOCK_ID,
    SEQUENCE_TABLE,
)
from hms_bridge.errors import BackendError
from hms_bridge.model.ids import CompactionId, EventId, LockId

_NOTIFICATION_SEQUENCE = table(
    "NOTIFICATION_SEQUENCE", column("NNI_ID", BigInteger), column("NEXT_EVENT_ID", BigInteger)
)


def next_lock_id(connection: Connection) -> LockId:
    """Take one lock id."""
    first = take_from_counter(connection, NEXT_LOCK_ID, NEXT_LOCK_ID.c.NL_NEXT, 1)
    if first is None:
        raise _empty("NEXT_LOCK_ID")
    return LockId(first)


def next_compaction_id(connection: Connection) -> CompactionId:
    """Take one id of the compaction queue."""
    counter = NEXT_COMPACTION_QUEUE_ID
    first = take_from_counter(connection, counter, counter.c.NCQ_NEXT, 1)
    if first is None:
        raise _empty("NEXT_COMPACTION_QUEUE_ID")
    return CompactionId(first)


def next_event_ids(connection: Connection, count: int) -> EventId:
    """Take ``count`` event ids; the first. Everyone who logs waits until this transaction ends."""
    events = _NOTIFICATION_SEQUENCE.c.NEXT_EVENT_ID
    first = take_from_counter(connection, _NOTIFICATION_SEQUENCE, events, count)
    if first is None:
        connection.execute(insert(_NOTIFICATION_SEQUENCE).values(NNI_ID=1, NEXT_EVENT_ID=1 + count))
        return EventId(1)
    return EventId(first)


def next_sequence_values(connection: Connection, name: str, count: int) -> int:
    """Take ``count`` values of a DataNucleus sequence (``org.apache.…MTable``); the first.

    A Hive metastore on the same database takes its values in blocks from the same row
    (docs/hive/metastore.md §15).
    """
    here = SEQUENCE_TABLE.c.SEQUENCE_NAME == name
    values = SEQUENCE_TABLE.c.NEXT_VAL
    first = take_from_counter(connection, SEQUENCE_TABLE, values, count, here)
    if first is None:
        connection.execute(insert(SEQUENCE_TABLE).values(SEQUENCE_NAME=name, NEXT_VAL=1 + count))
        return 1
    return first


def _empty(name: str) -> BackendError:
    return BackendError(
        f"table {name} has no row; the schema was not installed completely: "
        "run 'hms-bridge schema init'"
    )
