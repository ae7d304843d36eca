"""What happened, before it has a number: the verbs hand over drafts, the log numbers them.

``server`` and ``servicePrincipal`` are empty, as a metastore without Kerberos writes them.
Names and their order are those of Hive's JSON messages (golden: notifications of 4.0.1). What is
logged at all: docs/hive/metastore.md §17.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hms_bridge.model.catalog import DEFAULT_CATALOG, Database, Partition, Table
from hms_bridge.model.compaction import Compaction
from hms_bridge.model.event import EventType
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.txn import TxnToWriteId
from hms_bridge.notification.message_text import Message
from hms_bridge.wire.object_json import database_to_json, partition_to_json, table_to_json


@dataclass(frozen=True, kw_only=True, slots=True)
class EventDraft:
    """An event that is not numbered yet. Transaction events have no names."""

    type: EventType
    message: Message
    catalog_name: str | None = None
    database_name: str | None = None
    table_name: str | None = None


def origin() -> dict[str, Any]:
    """Who reports it."""
    return {"server": "", "servicePrincipal": ""}


def _of_database(event: EventType, database: Database, message: Message) -> EventDraft:
    return EventDraft(
        type=event,
        catalog_name=database.catalog_name,
        database_name=database.name,
        message=message,
    )


def of_table(event: EventType, table: Table, message: Message) -> EventDraft:
    """An event of one table."""
    return EventDraft(
        type=event,
        catalog_name=table.catalog_name,
        database_name=table.database_name,
        table_name=table.name,
        message=message,
    )


def database_created(database: Database, now_seconds: int) -> EventDraft:
    """CREATE_DATABASE."""
    message = origin() | {
        "db": database.name,
        "dbJson": database_to_json(database),
        "timestamp": now_seconds,
    }
    return _of_database(EventType.CREATE_DATABASE, database, message)


def database_altered(before: Database, after: Database, now_seconds: int) -> EventDraft:
    """ALTER_DATABASE."""
    message = origin() | {
        "db": before.name,
        "dbObjBeforeJson": database_to_json(before),
        "dbObjAfterJson": database_to_json(after),
        "timestamp": now_seconds,
    }
    return _of_database(EventType.ALTER_DATABASE, before, message)


def database_dropped(database: Database, now_seconds: int) -> EventDraft:
    """DROP_DATABASE."""
    message = origin() | {
        "db": database.name,
        "dbJson": database_to_json(database),
        "timestamp": now_seconds,
    }
    return _of_database(EventType.DROP_DATABASE, database, message)


def _table_head(table: Table) -> dict[str, Any]:
    return origin() | {
        "db": table.database_name,
        "table": table.name,
        "tableType": table.type,
    }


def table_created(table: Table, now_seconds: int, files: Sequence[str] = ()) -> EventDraft:
    """CREATE_TABLE. ``files`` (references) are those that were there before a table that is
    managed and not transactional; later ones have events of their own."""
    message = _table_head(table) | {
        "tableObjJson": table_to_json(table),
        "timestamp": now_seconds,
        "files": list(files),
    }
    return of_table(EventType.CREATE_TABLE, table, message)


def table_altered(
    before: Table,
    after: Table,
    now_seconds: int,
    *,
    is_truncate: bool = False,
    write_id: WriteId | None = None,
) -> EventDraft:
    """ALTER_TABLE. The message names the table as it was, the row as it is now (golden).

    ``write_id`` is the statement's if the table does not have it.
    """
    message = _table_head(before) | {
        "tableObjBeforeJson": table_to_json(before),
        "tableObjAfterJson": table_to_json(after),
        "isTruncateOp": _truth(is_truncate),
        "timestamp": now_seconds,
        "writeId": after.write_id if write_id is None else write_id,
    }
    return of_table(EventType.ALTER_TABLE, after, message)


def table_dropped(table: Table, now_seconds: int) -> EventDraft:
    """DROP_TABLE."""
    message = _table_head(table) | {
        "tableObjJson": table_to_json(table),
        "timestamp": now_seconds,
    }
    return of_table(EventType.DROP_TABLE, table, message)


def _key_values(table: Table, values: Sequence[str]) -> dict[str, str]:
    names = (column.name for column in table.partition_columns)
    return dict(zip(names, values, strict=True))


def partitions_added(table: Table, partitions: Sequence[Partition], now_seconds: int) -> EventDraft:
    """ADD_PARTITION: one event for all partitions of a call."""
    message = _table_head(table) | {
        "tableObjJson": table_to_json(table),
        "timestamp": now_seconds,
        "partitions": [_key_values(table, partition.values) for partition in partitions],
        "partitionListJson": [partition_to_json(partition) for partition in partitions],
        "partitionFiles": [
            {"partitionName": partition_name(table.partition_columns, p.values), "files": []}
            for p in partitions
            if not table.is_external
        ],
    }
    return of_table(EventType.ADD_PARTITION, table, message)


def partition_altered(
    table: Table,
    before: Partition,
    after: Partition,
    now_seconds: int,
    *,
    is_truncate: bool = False,
) -> EventDraft:
    """ALTER_PARTITION, under the old values; a rename shows in the two partitions."""
    message = _table_head(table) | {
        "tableObjJson": table_to_json(table),
        "isTruncateOp": _truth(is_truncate),
        "timestamp": now_seconds,
        "writeId": after.write_id,
        "keyValues": _key_values(table, before.values),
        "partitionObjBeforeJson": partition_to_json(before),
        "partitionObjAfterJson": partition_to_json(after),
    }
    return of_table(EventType.ALTER_PARTITION, table, message)


def partitions_altered(
    table: Table,
    changes: Sequence[tuple[Partition, Partition]],
    now_seconds: int,
    *,
    is_one_event: bool,
    is_truncate: bool = False,
) -> list[EventDraft]:
    """ALTER_PARTITIONS, one for each write id: the partitions as they are now (Hive 4.2). Else,
    for readers that do not know it, ALTER_PARTITION of each, from what it was."""
    if not is_one_event:
        return [
            partition_altered(table, before, after, now_seconds, is_truncate=is_truncate)
            for before, after in changes
        ]
    by_write_id: dict[int, list[Partition]] = {}
    for _, after in changes:
        by_write_id.setdefault(after.write_id, []).append(after)
    drafts = []
    for write_id, some in sorted(by_write_id.items()):
        message = _table_head(table) | {
            "tableObjJson": table_to_json(table),
            "isTruncateOp": _truth(is_truncate),
            "timestamp": now_seconds,
            "writeId": write_id,
            "partitions": [_key_values(table, partition.values) for partition in some],
            "partitionListJson": [partition_to_json(partition) for partition in some],
        }
        drafts.append(of_table(EventType.ALTER_PARTITIONS, table, message))
    return drafts


def partitions_dropped(
    table: Table, values: Sequence[Sequence[str]], now_seconds: int
) -> EventDraft:
    """DROP_PARTITION: one event for all partitions of a call."""
    message = _table_head(table) | {
        "tableObjJson": table_to_json(table),
        "timestamp": now_seconds,
        "partitions": [_key_values(table, of_one) for of_one in values],
    }
    return of_table(EventType.DROP_PARTITION, table, message)


def inserted(
    table: Table,
    partition: Partition | None,
    files: Sequence[str],
    now_seconds: int,
    *,
    is_replace: bool = False,
) -> EventDraft:
    """INSERT into a table that is not transactional; ``files`` are encoded file URIs."""
    message = _table_head(table) | {
        "tableObjJson": table_to_json(table),
        "ptnObjJson": None if partition is None else partition_to_json(partition),
        "timestamp": now_seconds,
        "replace": _truth(is_replace),
        "files": list(files),
    }
    return of_table(EventType.INSERT, table, message)


def txns_opened(ids: Sequence[TxnId], now_seconds: int) -> EventDraft:
    """OPEN_TXN, as a range where the ids are one, else as a list."""
    is_range = bool(ids) and ids[-1] - ids[0] == len(ids) - 1
    message = {
        "txnIds": None if is_range else list(ids),
        "timestamp": now_seconds,
        "fromTxnId": ids[0] if is_range else None,
        "toTxnId": ids[-1] if is_range else None,
    } | origin()
    return EventDraft(type=EventType.OPEN_TXN, message=message)


_FILLED_BY_DUMPS = ("tables", "partitions", "tableObjs", "partitionObjs", "files")


def txn_committed(
    txn_id: TxnId, written: Iterable[tuple[str, WriteId]], now_seconds: int
) -> EventDraft:
    """COMMIT_TXN, with the database and write id of each table that was written; the files stand
    in TXN_WRITE_NOTIFICATION_LOG."""
    databases, write_ids = _parallel(written)
    message: dict[str, Any] = {"txnid": txn_id, "timestamp": now_seconds} | origin()
    message |= {"writeIds": write_ids, "databases": databases}
    return EventDraft(type=EventType.COMMIT_TXN, message=message | dict.fromkeys(_FILLED_BY_DUMPS))


def txn_aborted(
    txn_id: TxnId, written: Iterable[tuple[str, WriteId]], now_seconds: int
) -> EventDraft:
    """ABORT_TXN, with the database and write id of each table that it could have written."""
    databases, write_ids = _parallel(written)
    message: dict[str, Any] = {"txnid": txn_id, "timestamp": now_seconds} | origin()
    message |= {"dbsUpdated": databases, "writeIds": write_ids}
    return EventDraft(type=EventType.ABORT_TXN, message=message)


def _parallel(written: Iterable[tuple[str, WriteId]]) -> tuple[list[str], list[WriteId]]:
    """Each database and write id once, as two lists of the same length (Hive 4.2:
    GetWriteIdsMappingForTxnIdsHandler)."""
    pairs = sorted(set(written))
    return [database for database, _ in pairs], [write_id for _, write_id in pairs]


def write_ids_allocated(
    database: str, table: str, pairs: Sequence[TxnToWriteId], now_seconds: int
) -> EventDraft:
    """ALLOC_WRITE_ID."""
    message = origin() | {
        "dbName": database,
        "tableName": table,
        "txnIdList": [pair.txn_id for pair in pairs],
        "writeIdList": [pair.write_id for pair in pairs],
        "timestamp": now_seconds,
    }
    return EventDraft(
        type=EventType.ALLOC_WRITE_ID,
        catalog_name=DEFAULT_CATALOG,
        database_name=database,
        table_name=table,
        message=message,
    )


def _of_compaction(
    event: EventType, compaction: Compaction, now_seconds: int, more: dict[str, Any]
) -> EventDraft:
    message = {"txnid": compaction.txn_id or 0, "timestamp": now_seconds} | origin()
    message |= {
        "compactionId": compaction.id,
        "type": compaction.type.name,
        "dbname": compaction.target.database,
        "tableName": compaction.target.table,
        "partName": compaction.target.partition,
    }
    return EventDraft(
        type=event,
        catalog_name=DEFAULT_CATALOG,
        database_name=compaction.target.database,
        table_name=compaction.target.table,
        message=message | more,
    )


def compaction_committed(compaction: Compaction, now_seconds: int) -> EventDraft:
    """COMMIT_COMPACTION: the compactor's transaction has committed."""
    return _of_compaction(EventType.COMMIT_COMPACTION, compaction, now_seconds, {})


def compaction_requested(compaction: Compaction, now_seconds: int) -> EventDraft:
    """REQUEST_COMPACTION: an entry came into the queue. Ours; Hive has no such event."""
    return _of_compaction(EventType.REQUEST_COMPACTION, compaction, now_seconds, {})


def compaction_failed(compaction: Compaction, now_seconds: int) -> EventDraft:
    """FAIL_COMPACTION: a worker gave up. Ours; Hive has no such event."""
    more = {"errorMessage": compaction.error_message}
    return _of_compaction(EventType.FAIL_COMPACTION, compaction, now_seconds, more)


def _truth(is_true: bool) -> str:
    return "true" if is_true else "false"
