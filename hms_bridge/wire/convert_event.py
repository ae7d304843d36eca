"""Notification events: thrift structs to records and back."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from hms_bridge.errors import MetaError
from hms_bridge.model.event import (
    EventRow,
    InsertNotification,
    NotificationEvent,
    NotificationRequest,
    WriteNotification,
)
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.fields import Entry, both_ways, name_or_none, or_else, required
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive

_DEFAULT_FORMAT = "json-0.2"


def _names(attribute: str) -> Entry:
    return Entry(
        attribute, lambda names: frozenset(names or ()), lambda names: sorted(names) or None
    )


event_to_struct, event_from_struct = both_ways(
    NotificationEvent,
    "NotificationEvent",
    id="eventId",
    time_seconds="eventTime",
    type="eventType",
    catalog_name="catName",
    database_name="dbName",
    table_name="tableName",
    message="message",
    message_format=or_else("messageFormat", _DEFAULT_FORMAT),
)
_EventStruct = namedtuple(
    "_EventStruct", "eventId eventTime eventType catName dbName tableName message messageFormat"
)
"""Values of an EventRow by the names of the struct's fields, for which alone thrift's encoder
looks: to make one takes a fifth of what a record and a struct do."""


def event_rows_to_structs(rows: Sequence[EventRow]) -> list[Any]:
    """NotificationEvents, to be sent only."""
    return list(map(_EventStruct._make, rows))


notification_request_to_struct, notification_request_from_struct = both_ways(
    NotificationRequest,
    "NotificationEventRequest",
    last_event_id=required("lastEvent"),
    # 0 or less events mean all.
    max_events=Entry("maxEvents", lambda limit: limit if limit and limit > 0 else None),
    types=_names("eventTypeList"),
    skipped_types=_names("eventTypeSkipList"),
    catalog_name="catName",
    database_name=name_or_none("dbName"),
    table_names=Entry(
        "tableNames",
        lambda names: tuple(name.lower() for name in names or ()),
        lambda names: list(names) or None,
    ),
)


def write_notification_from_struct(struct: Struct) -> WriteNotification:
    """From a WriteNotificationLogRequest. Raises MetaError if the parallel lists differ."""
    info = given(struct.fileInfo, "fileInfo")
    return WriteNotification(
        txn_id=struct.txnId,
        write_id=struct.writeId,
        database_name=given_name(struct.db, "db"),
        table_name=given_name(struct.table, "table"),
        partition_values=tuple(struct.partitionVals or ()),
        files=tuple(info.filesAdded or ()),
        checksums=_parallel(info, "filesAddedChecksum"),
        subdirectories=_parallel(info, "subDirectoryList"),
    )


def write_notification_to_struct(notification: WriteNotification) -> Struct:
    """A WriteNotificationLogRequest."""
    return hive.WriteNotificationLogRequest(
        txnId=notification.txn_id,
        writeId=notification.write_id,
        db=notification.database_name,
        table=notification.table_name,
        fileInfo=_data_of(notification, is_replace=False),
        partitionVals=list(notification.partition_values) or None,
    )


def insert_notifications_from_struct(struct: Struct) -> tuple[InsertNotification, ...]:
    """From a FireEventRequest: one for each partition that files came into; none for a request
    that only asks for a refresh. Raises MetaError."""
    data = given(struct.data, "data")
    if data.insertData is not None:
        several = [(data.insertData, struct.partitionVals)]
    else:
        several = [(insert, insert.partitionVal) for insert in data.insertDatas or ()]
    catalog, database = split_catalog(given(struct.dbName, "dbName"))
    return tuple(
        InsertNotification(
            catalog_name=(struct.catName or catalog).lower(),
            database_name=database or "",
            table_name=given_name(struct.tableName, "tableName"),
            partition_values=tuple(values or ()),
            files=tuple(insert.filesAdded or ()),
            checksums=_parallel(insert, "filesAddedChecksum"),
            subdirectories=_parallel(insert, "subDirectoryList"),
            is_replace=bool(insert.replace),
        )
        for insert, values in several
    )


def insert_notification_to_struct(notification: InsertNotification) -> Struct:
    """A FireEventRequest."""
    return hive.FireEventRequest(
        successful=True,
        data=hive.FireEventRequestData(
            insertData=_data_of(notification, is_replace=notification.is_replace)
        ),
        dbName=notification.database_name,
        tableName=notification.table_name,
        partitionVals=list(notification.partition_values) or None,
        catName=notification.catalog_name,
    )


def _data_of(notification: WriteNotification | InsertNotification, *, is_replace: bool) -> Struct:
    return hive.InsertEventRequestData(
        replace=is_replace,
        filesAdded=list(notification.files),
        filesAddedChecksum=list(notification.checksums) or None,
        subDirectoryList=list(notification.subdirectories) or None,
    )


def _parallel(info: Struct, name: str) -> tuple[str, ...]:
    """A list of as many texts as there are files. Raises MetaError for another number."""
    files, values = info.filesAdded or (), tuple(getattr(info, name) or ())
    if values and len(values) != len(files):
        raise MetaError(
            f"{name} has {len(values)} entries for the {len(files)} of filesAdded; "
            "send one for each file, or none"
        )
    return values
