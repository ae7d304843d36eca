"""The compaction queue and notification events over thrift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from hms_bridge.client.caller import Client
from hms_bridge.errors import MetaError, NoSuchCompactionError
from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.compaction import (
    OWN_POOL,
    AbortOutcome,
    Compaction,
    CompactionRequest,
    CompactionResponse,
    ShowCompactionsRequest,
)
from hms_bridge.model.event import (
    InsertNotification,
    NotificationEvent,
    NotificationRequest,
    WriteNotification,
)
from hms_bridge.model.ids import CompactionId, EventId, TxnId
from hms_bridge.model.target import TableName
from hms_bridge.model.txn import WriteEvent
from hms_bridge.wire import convert_compaction, convert_event, convert_txn
from hms_bridge.wire.structs import Struct, hive

_HIVE_FOUND_NO_ENTRY = "update count was 0"
"""How a Hive metastore says that it changed no row of the queue."""

_NO_POOL = convert_compaction.DEFAULT_POOL
"""What a Hive 4 metastore shows for an entry without a pool."""


class CompactionClient(Client):
    """CompactionStore over thrift."""

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        """Raises NoSuchObjectError (ours; a Hive metastore queues anything)."""
        struct = convert_compaction.compaction_request_to_struct(request)
        answer = self._caller.call("compact2", rqst=struct)
        return convert_compaction.compaction_response_from_struct(answer)

    def show_compactions(
        self, request: ShowCompactionsRequest | None = None
    ) -> tuple[Compaction, ...]:
        """The queue and its history. Metastores before 4.0 do not know the wish: it is checked
        here again."""
        struct = convert_compaction.show_request_to_struct(request or ShowCompactionsRequest())
        answer = self._caller.repeat("show_compact", rqst=struct)
        entries = tuple(_entry(element) for element in answer.compacts)
        if request is None:
            return entries
        matching = tuple(entry for entry in entries if _is_wanted(entry, request))
        return matching if request.limit is None else matching[: request.limit]

    def find_next_compaction(
        self,
        worker_id: str,
        worker_version: str | None,
        pool_name: str | None = None,
        *,
        is_selective: bool = False,
    ) -> Compaction | None:
        """Raises UnknownMethodError for a selective worker where there are no pools (Hive before
        4.0): it would be handed what it destroys."""
        pool_name = pool_name or (OWN_POOL if is_selective else None)
        request = hive.FindNextCompactRequest(
            workerId=worker_id, workerVersion=worker_version, poolName=pool_name
        )
        of_pool = ("find_next_compact2", {"rqst": request})
        without_pools = ("find_next_compact", {"workerId": worker_id})
        _, entry = self._caller.call_first_known(
            (of_pool,) if is_selective else (of_pool, without_pools)
        )
        if entry.ci is None:
            return None
        if entry.ci.workerId is None:
            entry.ci.workerId = worker_id
        return convert_compaction.compaction_info_from_struct(entry.ci)

    def update_compactor_state(self, compaction: Compaction, txn_id: TxnId) -> None:
        struct = convert_compaction.compaction_info_to_struct(compaction)
        self._caller.call("update_compactor_state", cr=struct, txn_id=txn_id)

    def set_hadoop_job_id(self, job_id: str, compaction_id: CompactionId) -> None:
        self._caller.repeat("set_hadoop_jobid", jobId=job_id, cq_id=compaction_id)

    def mark_compacted(self, compaction: Compaction) -> None:
        self._mark("mark_compacted", compaction)

    def mark_failed(self, compaction: Compaction) -> None:
        self._mark("mark_failed", compaction)

    def mark_refused(self, compaction: Compaction) -> None:
        self._mark("mark_refused", compaction)

    def mark_cleaned(self, compaction: Compaction) -> None:
        self._mark("mark_cleaned", compaction)

    def abort_compactions(self, ids: Sequence[CompactionId]) -> Mapping[CompactionId, AbortOutcome]:
        request = hive.AbortCompactionRequest(compactionIds=list(ids))
        try:
            answer = self._caller.call("abort_Compactions", rqst=request)
        except NoSuchCompactionError:
            return {}
        return {
            CompactionId(number): AbortOutcome(
                is_aborted=aborted.status == "Success", message=aborted.message or ""
            )
            for number, aborted in answer.abortedcompacts.items()
        }

    def _mark(self, name: str, compaction: Compaction) -> None:
        try:
            self._caller.call(name, cr=convert_compaction.compaction_info_to_struct(compaction))
        except MetaError as error:
            if _HIVE_FOUND_NO_ENTRY in str(error):
                raise NoSuchCompactionError(
                    f"compaction {compaction.id} of {compaction.target} is not in the queue, or "
                    "another worker has it; see SHOW COMPACTIONS"
                ) from error
            raise


class NotificationClient(Client):
    """NotificationStore over thrift."""

    def get_next_notification(self, request: NotificationRequest) -> tuple[NotificationEvent, ...]:
        """Old metastores do not know every filter: it is applied here again, and more is fetched
        until there is enough."""
        wanted, last = [], request.last_event_id
        limit = request.max_events if request.max_events and request.max_events > 0 else None
        while True:
            struct = convert_event.notification_request_to_struct(
                replace(request, last_event_id=last)
            )
            answer = self._caller.repeat("get_next_notification", rqst=struct)
            events = [convert_event.event_from_struct(event) for event in answer.events]
            wanted += [event for event in events if _is_selected(event, request)]
            if limit is None or len(events) < limit or len(wanted) >= limit:
                return tuple(wanted if limit is None else wanted[:limit])
            last = events[-1].id

    def get_current_event_id(self) -> EventId:
        answer = self._caller.repeat("get_current_notificationEventId")
        return EventId(answer.eventId)

    def get_notification_events_count(
        self,
        from_event_id: EventId,
        database: str,
        catalog: str = DEFAULT_CATALOG,
        *,
        tables: Sequence[str] = (),
    ) -> int:
        struct = hive.NotificationEventsCountRequest(
            fromEventId=from_event_id,
            dbName=database,
            catName=catalog,
            tableNames=list(tables) or None,
        )
        answer = self._caller.repeat("get_notification_events_count", rqst=struct)
        return int(answer.eventsCount)

    def add_write_notifications(self, notifications: Sequence[WriteNotification]) -> None:
        ordered = sorted(notifications, key=_table_of)
        for name, group in groupby(ordered, key=_table_of):
            structs = [
                convert_event.write_notification_to_struct(notification) for notification in group
            ]
            if len(structs) == 1:
                self._caller.repeat("add_write_notification_log", rqst=structs[0])
                continue
            batch = hive.WriteNotificationLogBatchRequest(
                catalog=name.catalog, db=name.database, table=name.table, requestList=structs
            )
            self._caller.repeat("add_write_notification_log_in_batch", rqst=batch)

    def fire_inserts(self, notifications: Sequence[InsertNotification]) -> tuple[EventId, ...]:
        """Raises NoSuchObjectError. Never repeated: each call is an event."""
        ids: list[EventId] = []
        for notification in notifications:
            struct = convert_event.insert_notification_to_struct(notification)
            answer = self._caller.call("fire_listener_event", rqst=struct)
            ids += [EventId(number) for number in answer.eventIds or ()]
        return tuple(ids)

    def get_write_events(
        self, txn_id: TxnId, database: str | None = None, table: str | None = None
    ) -> tuple[WriteEvent, ...]:
        request = hive.GetAllWriteEventInfoRequest(txnId=txn_id, dbName=database, tableName=table)
        structs = self._caller.repeat("get_all_write_event_info", request=request)
        return tuple(convert_txn.write_event_from_struct(event) for event in structs)


def _table_of(notification: WriteNotification) -> TableName:
    return TableName(notification.database_name, notification.table_name)


def _entry(element: Struct) -> Compaction:
    entry = convert_compaction.compaction_from_element(element)
    return replace(entry, pool_name=None) if entry.pool_name == _NO_POOL else entry


def _is_wanted(entry: Compaction, request: ShowCompactionsRequest) -> bool:
    pairs = (
        (request.id, entry.id),
        (request.scope.database, entry.target.database),
        (request.scope.table, entry.target.table),
        (request.scope.partition, entry.target.partition),
        (request.type, entry.type),
        (request.state, entry.state),
    )
    return all(wanted is None or wanted == actual for wanted, actual in pairs)


def _is_selected(event: NotificationEvent, request: NotificationRequest) -> bool:
    if event.type in request.skipped_types or (request.types and event.type not in request.types):
        return False
    pairs = (
        (request.catalog_name, event.catalog_name),
        (request.database_name, event.database_name),
    )
    if any(wanted is not None and wanted.lower() != (is_ or "").lower() for wanted, is_ in pairs):
        return False
    tables = [table.lower() for table in request.table_names]
    return not tables or (event.table_name or "").lower() in tables
