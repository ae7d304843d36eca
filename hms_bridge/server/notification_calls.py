"""Notification events, and what writers report for them."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.ids import EventId, TxnId
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_metastore import ServedNotifications
from hms_bridge.wire import convert_event, convert_txn
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


class NotificationCalls(Calls[ServedNotifications]):
    """Notification events."""

    @answers("get_next_notification", of="rqst")
    def get_next_notification(self, request: Struct) -> Struct:
        rows = self._store.get_next_notification_rows(
            convert_event.notification_request_from_struct(request)
        )
        return hive.NotificationEventResponse(events=convert_event.event_rows_to_structs(rows))

    @answers("get_current_notificationEventId")
    def get_current_event_id(self, _: Struct) -> Struct:
        return hive.CurrentNotificationEventId(eventId=self._store.get_current_event_id())

    @answers("get_notification_events_count", of="rqst")
    def get_events_count(self, request: Struct) -> Struct:
        """How many events of a database lie between two ids."""
        count = self._count_after(given(request.fromEventId, "fromEventId"), request)
        if request.toEventId:
            count -= self._count_after(request.toEventId, request)
        count = max(count, 0)
        if request.limit is not None and request.limit > 0:
            count = min(count, request.limit)
        return hive.NotificationEventsCountResponse(eventsCount=count)

    @answers("add_write_notification_log", of="rqst")
    def add_write_notification(self, request: Struct) -> Struct:
        self._store.add_write_notifications([convert_event.write_notification_from_struct(request)])
        return hive.WriteNotificationLogResponse()

    @answers("add_write_notification_log_in_batch", of="rqst")
    def add_write_notifications(self, request: Struct) -> Struct:
        """Which files a transaction wrote to several partitions of one table."""
        database = given_name(request.db, "db")
        table = given_name(request.table, "table")
        notifications = [
            replace(
                convert_event.write_notification_from_struct(struct),
                database_name=database,
                table_name=table,
            )
            for struct in given(request.requestList, "requestList")
        ]
        self._store.add_write_notifications(notifications)
        return hive.WriteNotificationLogBatchResponse()

    @answers("fire_listener_event", of="rqst")
    def fire_event(self, request: Struct) -> Struct:
        """Log that files came into tables that are not transactional."""
        insertions = convert_event.insert_notifications_from_struct(request)
        if not insertions:
            raise MetaError(
                "fire_listener_event tells of inserted files only here; events of a refresh are "
                "not written"
            )
        return hive.FireEventResponse(eventIds=list(self._store.fire_inserts(insertions)))

    @answers("get_all_write_event_info", of="request")
    def get_write_events(self, request: Struct) -> list[Struct]:
        events = self._store.get_write_events(
            TxnId(given(request.txnId, "txnId")),
            request.dbName.lower() if request.dbName else None,
            request.tableName.lower() if request.tableName else None,
        )
        return [convert_txn.write_event_to_struct(event) for event in events]

    def _count_after(self, event_id: int, request: Struct) -> int:
        database = given_name(request.dbName, "dbName")
        catalog = request.catName or DEFAULT_CATALOG
        if database == "*":
            return self._store.get_current_event_id() - event_id
        tables = tuple(name.lower() for name in request.tableNames or ())
        return self._store.get_notification_events_count(
            EventId(event_id), database, catalog, tables=tables
        )
