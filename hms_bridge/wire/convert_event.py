"""Notification events: thrift structs to records and back."""

from __future__ import annotations

from hms_bridge.errors import MetaError
from hms_bridge.model.event import (
    InsertNotification,
    NotificationEvent,
    NotificationRequest,
    WriteNotification,
)
from hms_bridge.model.ids import EventId
from hms_bridge.wire.catalog_names import split_catalog
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive

_DEFAULT_FORMAT = "json-0.2"


def event_to_struct(event: NotificationEvent) -> Struct:
    """A NotificationEvent struct."""
    return hive.NotificationEvent(
        eventId=event.id,
        eventTime=event.time_seconds,
        eventType=event.type,
        dbName=event.database_name,
        tableName=event.table_name,
        message=event.message,
        messageFormat=event.message_format,
        catName=event.catalog_name,
    )


def event_from_struct(struct: Struct) -> NotificationEvent:
    """From a NotificationEvent struct."""
    return NotificationEvent(
        id=EventId(struct.eventId),
        time_seconds=struct.eventTime,
        type=struct.eventType,
        catalog_name=struct.catName,
        database_name=struct.dbName,
        table_name=struct.tableName,
        message=struct.message,
        message_format=struct.messageFormat or _DEFAULT_FORMAT,
    )


def notification_request_from_struct(struct: Struct) -> NotificationRequest:
    """From a NotificationEventRequest; 0 or less events mean all."""
    limit = struct.maxEvents
    return NotificationRequest(
        last_event_id=EventId(given(struct.lastEvent, "lastEvent")),
        max_events=limit if limit is not None and limit > 0 else None,
        types=frozenset(struct.eventTypeList or ()),
        skipped_types=frozenset(struct.eventTypeSkipList or ()),
        catalog_name=struct.catName,
        database_name=struct.dbName.lower() if struct.dbName else None,
        table_names=tuple(name.lower() for name in struct.tableNames or ()),
    )


def notification_request_to_struct(request: NotificationRequest) -> Struct:
    """A NotificationEventRequest."""
    return hive.NotificationEventRequest(
        lastEvent=request.last_event_id,
        maxEvents=request.max_events,
        eventTypeList=sorted(request.types) or None,
        eventTypeSkipList=sorted(request.skipped_types) or None,
        catName=request.catalog_name,
        dbName=request.database_name,
        tableNames=list(request.table_names) or None,
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
        fileInfo=hive.InsertEventRequestData(
            replace=False,
            filesAdded=list(notification.files),
            filesAddedChecksum=list(notification.checksums) or None,
            subDirectoryList=list(notification.subdirectories) or None,
        ),
        partitionVals=list(notification.partition_values) or None,
    )


def insert_notifications_from_struct(struct: Struct) -> tuple[InsertNotification, ...]:
    """From a FireEventRequest: one for each partition that files came into; none for a request
    that only asks for a refresh. Raises MetaError."""
    data = given(struct.data, "data")
    if data.insertData is not None:
        several = [(data.insertData, struct.partitionVals)]
    else:
        several = [(one, one.partitionVal) for one in data.insertDatas or ()]
    catalog, database = split_catalog(given(struct.dbName, "dbName"))
    return tuple(
        InsertNotification(
            catalog_name=(struct.catName or catalog).lower(),
            database_name=database or "",
            table_name=given_name(struct.tableName, "tableName"),
            partition_values=tuple(values or ()),
            files=tuple(one.filesAdded or ()),
            checksums=_parallel(one, "filesAddedChecksum"),
            subdirectories=_parallel(one, "subDirectoryList"),
            is_replace=bool(one.replace),
        )
        for one, values in several
    )


def insert_notification_to_struct(notification: InsertNotification) -> Struct:
    """A FireEventRequest."""
    return hive.FireEventRequest(
        successful=True,
        data=hive.FireEventRequestData(
            insertData=hive.InsertEventRequestData(
                replace=notification.is_replace,
                filesAdded=list(notification.files),
                filesAddedChecksum=list(notification.checksums) or None,
                subDirectoryList=list(notification.subdirectories) or None,
            )
        ),
        dbName=notification.database_name,
        tableName=notification.table_name,
        partitionVals=list(notification.partition_values) or None,
        catName=notification.catalog_name,
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
