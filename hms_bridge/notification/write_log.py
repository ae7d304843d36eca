"""TXN_WRITE_NOTIFICATION_LOG: which files each transaction added to which table or partition.

One row for a transaction, table and partition; later files stand before earlier ones, joined by
``]``. Nothing here is an event by itself; a dump reads these rows when it meets the transaction's
COMMIT_TXN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, select, update

from changemanager.uri import EncodedUri, encode_uri, join_uris, split_uris
from hms_bridge.backend.batches import batches, insert_rows
from hms_bridge.backend.schema.data_steps import WRITE_LOG_SEQUENCE
from hms_bridge.backend.schema.notification_tables import TXN_WRITE_NOTIFICATION_LOG
from hms_bridge.backend.sequences import next_sequence_values
from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import WriteNotification
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.target import Target
from hms_bridge.model.txn import WriteEvent
from hms_bridge.wire.object_json import partition_to_json, table_to_json

_ROW = TXN_WRITE_NOTIFICATION_LOG.c
_Key = tuple[int, str, str, str]
"""Of a row: transaction, database, table, partition."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A notification with the objects that it is about."""

    notification: WriteNotification
    table: Table
    partition: Partition | None
    cmroot: str | None
    """Where files are archived; None where the database is no replication source."""


def add(connection: Connection, written: Sequence[Written], now_seconds: int) -> None:
    """Remember files. Those that a row names already are not added again.

    Raises InvalidObjectError for lists of different lengths.
    """
    for write in written:
        _add_event(connection, write.notification.txn_id, _event_of(write), now_seconds)


def add_events(
    connection: Connection, txn_id: TxnId, events: Sequence[WriteEvent], now_seconds: int
) -> None:
    """Remember what a replayed transaction wrote, as its source logged it."""
    for event in events:
        _add_event(connection, txn_id, event, now_seconds)


def add_replayed(
    connection: Connection,
    events: Sequence[tuple[TxnId, WriteEvent]],
    now_seconds: int,
) -> None:
    """As :func:`add_events`, of several transactions: the first of each row all at once."""
    txn_ids = sorted({txn_id for txn_id, _ in events})
    known: set[_Key] = set()
    for batch in batches(txn_ids):
        key = select(_ROW.WNL_TXNID, _ROW.WNL_DATABASE, _ROW.WNL_TABLE, _ROW.WNL_PARTITION)
        rows = connection.execute(key.where(_ROW.WNL_TXNID.in_(batch)))
        known.update((txn_id, *place) for txn_id, *place in rows)
    first: list[tuple[TxnId, WriteEvent]] = []
    further: list[tuple[TxnId, WriteEvent]] = []
    for txn_id, event in events:
        key_of = (txn_id, event.target.database, event.target.table, event.partition)
        (further if key_of in known else first).append((txn_id, event))
        known.add(key_of)
    if first:
        number = next_sequence_values(connection, WRITE_LOG_SEQUENCE, len(first))
        rows_of = [
            _row_of(at, txn_id, event, now_seconds)
            for at, (txn_id, event) in enumerate(first, number)
        ]
        insert_rows(connection, TXN_WRITE_NOTIFICATION_LOG, rows_of)
    for txn_id, event in further:
        _add_event(connection, txn_id, event, now_seconds)


def _event_of(write: Written) -> WriteEvent:
    notification, table = write.notification, write.table
    name = (
        partition_name(table.partition_columns, notification.partition_values)
        if notification.partition_values
        else None
    )
    return WriteEvent(
        write_id=WriteId(notification.write_id),
        target=Target(notification.database_name, notification.table_name, name),
        table_object=table_to_json(table),
        partition_object=None if write.partition is None else partition_to_json(write.partition),
        files=tuple(
            encoded_files(
                notification.files,
                notification.checksums,
                notification.subdirectories,
                write.cmroot,
            )
        ),
    )


def encoded_files(
    files: Sequence[str], checksums: Sequence[str], directories: Sequence[str], cmroot: str | None
) -> list[str]:
    """References as events hold them. Raises InvalidObjectError for lists of different lengths."""
    require_equal_lengths(files, checksums, directories)
    known: Sequence[str | None] = checksums or (None,) * len(files)
    directories = directories or ("",) * len(files)
    return [
        encode_uri(
            EncodedUri(
                uri=uri,
                checksum=checksum,
                cmroot=cmroot,
                sub_directory=directory or None,
            )
        )
        for uri, checksum, directory in zip(files, known, directories, strict=True)
    ]


def require_equal_lengths(
    files: Sequence[str], checksums: Sequence[str], directories: Sequence[str]
) -> None:
    """Raises InvalidObjectError for lists of different lengths; the last two may be empty."""
    if not all(len(texts) in (0, len(files)) for texts in (checksums, directories)):
        raise InvalidObjectError(
            f"{len(files)} files, {len(checksums)} checksums, {len(directories)} sub-directories "
            "were sent; give as many of each"
        )


def _add_event(connection: Connection, txn_id: int, event: WriteEvent, now_seconds: int) -> None:
    key = and_(
        _ROW.WNL_TXNID == txn_id,
        _ROW.WNL_DATABASE == event.target.database,
        _ROW.WNL_TABLE == event.target.table,
        _ROW.WNL_PARTITION == event.partition,
    )
    row = connection.execute(select(_ROW.WNL_FILES).where(key).with_for_update()).first()
    if row is None:
        number = next_sequence_values(connection, WRITE_LOG_SEQUENCE, 1)
        row_of = _row_of(number, txn_id, event, now_seconds)
        insert_rows(connection, TXN_WRITE_NOTIFICATION_LOG, [row_of])
        return
    known = split_uris(row.WNL_FILES or "")
    new = [file for file in event.files if file not in known]
    connection.execute(
        update(TXN_WRITE_NOTIFICATION_LOG)
        .where(key)
        .values(
            WNL_TABLE_OBJ=event.table_object,
            WNL_PARTITION_OBJ=event.partition_object,
            WNL_FILES=join_uris([*new, *known]),
            WNL_EVENT_TIME=now_seconds,
        )
    )


def _row_of(number: int, txn_id: int, event: WriteEvent, now_seconds: int) -> dict[str, Any]:
    return {
        "WNL_ID": number,
        "WNL_TXNID": txn_id,
        "WNL_WRITEID": event.write_id,
        "WNL_DATABASE": event.target.database,
        "WNL_TABLE": event.target.table,
        "WNL_PARTITION": event.partition,
        "WNL_TABLE_OBJ": event.table_object,
        "WNL_PARTITION_OBJ": event.partition_object,
        "WNL_FILES": join_uris(event.files),
        "WNL_EVENT_TIME": now_seconds,
    }


def read(
    connection: Connection,
    txn_id: TxnId,
    database: str | None = None,
    table: str | None = None,
) -> tuple[WriteEvent, ...]:
    """What a transaction wrote, by database, table and partition."""
    query = select(TXN_WRITE_NOTIFICATION_LOG).where(_ROW.WNL_TXNID == txn_id)
    if database is not None:
        query = query.where(_ROW.WNL_DATABASE == database.lower())
    if table is not None:
        query = query.where(_ROW.WNL_TABLE == table.lower())
    rows = connection.execute(query.order_by(_ROW.WNL_DATABASE, _ROW.WNL_TABLE, _ROW.WNL_PARTITION))
    return tuple(
        WriteEvent(
            write_id=WriteId(row.WNL_WRITEID),
            target=Target(row.WNL_DATABASE, row.WNL_TABLE, row.WNL_PARTITION or None),
            table_object=row.WNL_TABLE_OBJ,
            partition_object=row.WNL_PARTITION_OBJ,
            files=split_uris(row.WNL_FILES or ""),
        )
        for row in rows
    )
