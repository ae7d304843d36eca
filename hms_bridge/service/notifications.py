"""Verbs of notification events and write notifications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from changemanager.errors import EncodedUriError
from changemanager.filesystem.opening import BUCKET_SCHEMES
from changemanager.location import ParsedUri, is_within, parse_uri
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import databases, partitions, tables, view_creation
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import InvalidObjectError, NoSuchObjectError
from hms_bridge.hooks import points
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import (
    InsertNotification,
    WriteNotification,
)
from hms_bridge.model.ids import EventId
from hms_bridge.notification import event_log, events, write_log
from hms_bridge.notification.events import EventDraft
from hms_bridge.notification.write_log import Written
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads

_Files = TypeVar("_Files", WriteNotification, InsertNotification)


class NotificationVerbs(VerbFamily):
    """The NotificationStore."""

    get_next_notification = reads(sql(event_log.read))
    get_next_notification_rows = reads(sql(event_log.read_rows))
    get_current_event_id = reads(sql(event_log.current_event_id))
    get_notification_events_count = reads(sql(event_log.count))
    get_write_events = reads(sql(write_log.read))

    def add_write_notifications(self, notifications: Sequence[WriteNotification]) -> None:
        def work(unit: UnitOfWork) -> None:
            written = [self._written(unit.connection, given) for given in notifications]
            try:
                write_log.add(unit.connection, written, unit.now_seconds)
            except EncodedUriError as error:
                raise InvalidObjectError(str(error)) from error
            unit.points += [points.acid_written(write.notification) for write in written]

        self._transactions.write(work)

    def _written(self, connection: Connection, notification: WriteNotification) -> Written:
        lowered = replace(
            notification,
            database_name=notification.database_name.lower(),
            table_name=notification.table_name.lower(),
        )
        stored = tables.require_table(
            connection, lowered.database_name, lowered.table_name, lock=RowLock.SHARED
        )
        database = databases.require_database(connection, lowered.database_name).database
        partition = _partition(connection, stored, lowered.partition_values)
        return Written(
            notification=self._own_files(lowered, stored.table, partition),
            table=stored.table,
            partition=partition,
            cmroot=self._files.cmroot if database.is_replication_source else None,
        )

    def fire_inserts(self, notifications: Sequence[InsertNotification]) -> tuple[EventId, ...]:
        def work(unit: UnitOfWork) -> None:
            unit.events += [self._inserted(unit, notification) for notification in notifications]

        if not notifications:
            return ()
        return tuple(event.id for event in self._transactions.write_logged(work))

    def _inserted(self, unit: UnitOfWork, given: InsertNotification) -> EventDraft:
        key = (given.database_name.lower(), given.table_name.lower(), given.catalog_name.lower())
        stored = tables.require_table(unit.connection, *key, RowLock.SHARED)
        stored = view_creation.with_creation(unit.connection, stored)
        partition = _partition(unit.connection, stored, given.partition_values)
        own = self._own_files(given, stored.table, partition)
        # Hive names the change manager's root here whether or not the database is a source.
        try:
            files = write_log.encoded_files(
                own.files, own.checksums, own.subdirectories, self._files.cmroot
            )
        except EncodedUriError as error:
            raise InvalidObjectError(str(error)) from error
        return events.inserted(
            stored.table, partition, files, unit.now_seconds, is_replace=given.is_replace
        )

    def _own_files(self, notification: _Files, table: Table, partition: Partition | None) -> _Files:
        """The same of files below the directory of the table or partition.

        Hive (Hive.loadDynamicPartitions) names with p=1 the files of p=10, too: their paths begin
        alike. Those are of p=10's own notification. Raises InvalidObjectError for any other file: a
        dump would name it, and a load would bring its rows to the replica.
        """
        write_log.require_equal_lengths(
            notification.files, notification.checksums, notification.subdirectories
        )
        place = table.storage.location
        if partition is not None:
            place = partition.storage.location or place
        others: set[int] = set()
        for index, text in enumerate(notification.files):
            file = parse_uri(self._roots.uri(text, f"a file written to {table.full_name}"))
            own = None if place is None else parse_uri(self._roots.uri(place, table.full_name))
            if own is not None and self._is_of(file, own) and is_within(file.path, own.path):
                continue
            if partition is None or own is None or not file.path.startswith(own.path):
                raise InvalidObjectError(
                    f"{text} was not written to {table.full_name}: it is not below {place}"
                )
            others.add(index)
        files, checksums, subdirectories = (
            tuple(text for index, text in enumerate(texts) if index not in others)
            for texts in (notification.files, notification.checksums, notification.subdirectories)
        )
        return replace(
            notification, files=files, checksums=checksums, subdirectories=subdirectories
        )

    def _is_of(self, file: ParsedUri, place: ParsedUri) -> bool:
        """Whether they are on one file system, which may have several names: of hosts that whoever
        runs the metastore named."""
        if file.scheme in BUCKET_SCHEMES or place.scheme in BUCKET_SCHEMES:
            return (file.server, file.authority) == (place.server, place.authority)
        has_hosts = bool(file.authority and place.authority)
        return file.server == place.server or (has_hosts and self._files.is_connected(file.uri))


def _partition(
    connection: Connection, stored: StoredTable, values: Sequence[str]
) -> Partition | None:
    if not values:
        return None
    name = partitions.name_of(stored.table, values)
    named = partitions.find_by_names(connection, stored, [name], RowLock.SHARED).stored()
    if not named:
        raise NoSuchObjectError(f"partition {name} of {stored.table.full_name} not found")
    return named[0].partition
