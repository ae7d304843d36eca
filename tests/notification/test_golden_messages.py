"""Messages are those of a real Hive 4.0.1, name by name and value by value.

The objects of each recorded event are read, the event is drafted anew from them, and the two
messages are compared. Masked: only what the records of this project do not hold (MASKED).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hms_bridge.model.catalog import Database, Partition, Table
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnToWriteId
from hms_bridge.notification import events
from hms_bridge.notification.events import EventDraft
from hms_bridge.wire.object_json import struct_from_json
from hms_bridge.wire.received import received_database, received_partition, received_table
from tests.support.golden_wire import lines

pytestmark = pytest.mark.golden

Row = dict[str, Any]

MASKED = {
    "Database": {"11": "type: always NATIVE here"},
}
NEWER_LISTS = {"COMMIT_TXN": ("writeIds", "databases"), "ABORT_TXN": ("writeIds",)}
"""Null or absent in 4.0.1; 4.2.0 writes them (tests/repl compares them with its dumps)."""
OBJECTS = {
    "dbJson": "Database", "dbObjBeforeJson": "Database", "dbObjAfterJson": "Database",
    "tableObjJson": "Table", "tableObjBeforeJson": "Table", "tableObjAfterJson": "Table",
    "partitionObjBeforeJson": "Partition", "partitionObjAfterJson": "Partition",
    "ptnObjJson": "Partition",
}  # fmt: skip


def database_from_json(text: str) -> Database:
    return received_database(struct_from_json("Database", text))


def table_from_json(text: str) -> Table:
    return received_table(struct_from_json("Table", text))


def partition_from_json(text: str) -> Partition:
    return received_partition(struct_from_json("Partition", text))


def _database(row: Row) -> EventDraft:
    message, now = row["message"], row["message"]["timestamp"]
    if row["eventType"] == "ALTER_DATABASE":
        before, after = (
            database_from_json(message[key]) for key in ("dbObjBeforeJson", "dbObjAfterJson")
        )
        return events.database_altered(before, after, now)
    database = database_from_json(message["dbJson"])
    if row["eventType"] == "CREATE_DATABASE":
        return events.database_created(database, now)
    return events.database_dropped(database, now)


def _table(row: Row) -> EventDraft:
    message, now = row["message"], row["message"]["timestamp"]
    if row["eventType"] == "ALTER_TABLE":
        before, after = (
            table_from_json(message[key]) for key in ("tableObjBeforeJson", "tableObjAfterJson")
        )
        return events.table_altered(
            before, after, now, is_truncate=message["isTruncateOp"] == "true"
        )
    table = table_from_json(message["tableObjJson"])
    if row["eventType"] == "CREATE_TABLE":
        return events.table_created(table, now)
    return events.table_dropped(table, now)


def _partition(row: Row) -> EventDraft:
    message, now = row["message"], row["message"]["timestamp"]
    table = table_from_json(message["tableObjJson"])
    if row["eventType"] == "ADD_PARTITION":
        added = [partition_from_json(text) for text in message["partitionListJson"]]
        return events.partitions_added(table, added, now)
    if row["eventType"] == "DROP_PARTITION":
        return events.partitions_dropped(
            table, [tuple(one.values()) for one in message["partitions"]], now
        )
    before, after = (
        partition_from_json(message[key])
        for key in ("partitionObjBeforeJson", "partitionObjAfterJson")
    )
    return events.partition_altered(
        table, before, after, now, is_truncate=message["isTruncateOp"] == "true"
    )


def _insert(row: Row) -> EventDraft:
    message = row["message"]
    partition = message["ptnObjJson"]
    return events.inserted(
        table_from_json(message["tableObjJson"]),
        None if partition is None else partition_from_json(partition),
        message["files"],
        message["timestamp"],
        is_replace=message["replace"] == "true",
    )


def _txn(row: Row) -> EventDraft:
    message, now = row["message"], row["message"]["timestamp"]
    if row["eventType"] == "OPEN_TXN":
        ids = message["txnIds"] or range(message["fromTxnId"], message["toTxnId"] + 1)
        return events.txns_opened([TxnId(one) for one in ids], now)
    if row["eventType"] == "COMMIT_TXN":
        return events.txn_committed(TxnId(message["txnid"]), (), now)
    if row["eventType"] == "ABORT_TXN":
        written = [(name, WriteId(1)) for name in message["dbsUpdated"]]
        return events.txn_aborted(TxnId(message["txnid"]), written, now)
    if row["eventType"] == "ALLOC_WRITE_ID_EVENT":
        pairs = [
            TxnToWriteId(txn_id=TxnId(txn), write_id=WriteId(write))
            for txn, write in zip(message["txnIdList"], message["writeIdList"], strict=True)
        ]
        return events.write_ids_allocated(message["dbName"], message["tableName"], pairs, now)
    compaction = Compaction(
        id=CompactionId(message["compactionId"]),
        target=Target(message["dbname"], message["tableName"], message["partName"]),
        type=CompactionType[message["type"]],
        state=CompactionState.READY_FOR_CLEANING,
        txn_id=TxnId(message["txnid"]),
    )
    return events.compaction_committed(compaction, now)


DRAFT: dict[str, Callable[[Row], EventDraft]] = {
    **dict.fromkeys(("CREATE_DATABASE", "ALTER_DATABASE", "DROP_DATABASE"), _database),
    **dict.fromkeys(("CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"), _table),
    **dict.fromkeys(("ADD_PARTITION", "ALTER_PARTITION", "DROP_PARTITION"), _partition),
    "INSERT": _insert,
    **dict.fromkeys(
        ("OPEN_TXN", "COMMIT_TXN", "ABORT_TXN", "ALLOC_WRITE_ID_EVENT", "COMMIT_COMPACTION_EVENT"),
        _txn,
    ),
}
ROWS = [row for row in lines("notifications-4.0.1.jsonl.gz") if row["eventType"] in DRAFT]
COMPARED_IN_CALLS = {
    "ADD_CHECKCONSTRAINT", "ADD_DEFAULTCONSTRAINT", "ADD_FOREIGNKEY", "ADD_NOTNULLCONSTRAINT",
    "ADD_PRIMARYKEY", "ADD_UNIQUECONSTRAINT", "CREATE_FUNCTION", "DELETE_PART_COL_STAT_EVENT",
    "DELETE_TBL_COL_STAT_EVENT", "DROP_CONSTRAINT", "DROP_FUNCTION", "UPDATE_PART_COL_STAT_EVENT",
    "UPDATE_TBL_COL_STAT_EVENT",
}  # fmt: skip
"""Kinds whose drafts take more than the objects that a message holds. They are compared as the
others are, by the calls that cause them: tests/server/test_golden_replay.py."""


def masked(kind: str, text: str) -> Row:
    """A nested object without the fields that are masked, maps without their order."""
    return _masked_fields(kind, json.loads(text))


def _masked_fields(kind: str, fields: Row) -> Row:
    inner = {
        "Table": {"7": "StorageDescriptor"}, "Partition": {"6": "StorageDescriptor"},
        "StorageDescriptor": {"7": "SerDeInfo"},
    }.get(kind, {})  # fmt: skip
    kept = {key: value for key, value in fields.items() if key not in MASKED.get(kind, {})}
    for key, of in inner.items():
        if key in kept:
            kept[key] = {"rec": _masked_fields(of, kept[key]["rec"])}
    return kept


def comparable(message: Row) -> Row:
    found = dict(message)
    for key, kind in OBJECTS.items():
        if found.get(key) is not None:
            found[key] = masked(kind, found[key])
    if "partitionListJson" in found:
        found["partitionListJson"] = [masked("Partition", t) for t in found["partitionListJson"]]
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['eventId']}-{row['eventType']}")
def test_a_message_is_hives(row: Row) -> None:
    draft = DRAFT[row["eventType"]](row)
    assert draft.type.value == row["eventType"]
    newer = NEWER_LISTS.get(row["eventType"], ())
    names = [name for name in draft.message if name in row["message"] or name not in newer]
    assert names == list(row["message"])
    expected = comparable(row["message"])
    expected |= {name: draft.message[name] for name in newer}
    if row["eventType"] == "CREATE_DATABASE":
        # Hive logs the name as the client wrote it; names here are lower case throughout.
        expected["db"] = expected["db"].lower()
        expected["dbJson"]["1"]["str"] = expected["dbJson"]["1"]["str"].lower()
    assert comparable(dict(draft.message)) == expected
    assert (draft.catalog_name, draft.database_name, draft.table_name) == (
        row.get("catName"), row.get("dbName") and row["dbName"].lower(), row.get("tableName"),
    )  # fmt: skip


def test_what_a_transaction_wrote_stands_in_parallel_lists() -> None:
    written = [("b", WriteId(7)), ("a", WriteId(9)), ("a", WriteId(3)), ("a", WriteId(9))]
    committed = events.txn_committed(TxnId(1), written, 0).message
    assert (committed["databases"], committed["writeIds"]) == (["a", "a", "b"], [3, 9, 7])
    aborted = events.txn_aborted(TxnId(1), written, 0).message
    assert (aborted["dbsUpdated"], aborted["writeIds"]) == (["a", "a", "b"], [3, 9, 7])


def test_every_kind_is_compared() -> None:
    assert {row["eventType"] for row in ROWS} == set(DRAFT)
    kinds = {row["eventType"] for row in lines("notifications-4.0.1.jsonl.gz")}
    assert kinds - set(DRAFT) == COMPARED_IN_CALLS


def test_the_masks_mask_something() -> None:
    for kind, fields in MASKED.items():
        keys = [key for key, of in OBJECTS.items() if of == kind]
        different = {
            number
            for row in ROWS
            for key in keys
            if row["message"].get(key) is not None
            for number in fields
            if _field(row["message"][key], number)
            != _field(DRAFT[row["eventType"]](row).message[key], number)
        }
        assert different == set(fields)


def _field(text: str, number: str) -> Any:
    return json.loads(text).get(number)
