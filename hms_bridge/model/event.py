"""Records of notification events. Event times are seconds, as NOTIFICATION_LOG keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from hms_bridge.model.catalog import DEFAULT_CATALOG
from hms_bridge.model.ids import EventId


class EventType(StrEnum):
    """Kinds of events; the text is stored in NOTIFICATION_LOG.EVENT_TYPE.

    REQUEST_COMPACTION and FAIL_COMPACTION are ours: Hive logs only a compaction's commit. Hive's
    REPL DUMP carries kinds it does not know as EVENT_UNKNOWN and its LOAD ignores them.
    """

    CREATE_DATABASE = "CREATE_DATABASE"
    ALTER_DATABASE = "ALTER_DATABASE"
    DROP_DATABASE = "DROP_DATABASE"
    CREATE_TABLE = "CREATE_TABLE"
    ALTER_TABLE = "ALTER_TABLE"
    DROP_TABLE = "DROP_TABLE"
    ADD_PARTITION = "ADD_PARTITION"
    ALTER_PARTITION = "ALTER_PARTITION"
    ALTER_PARTITIONS = "ALTER_PARTITIONS"
    DROP_PARTITION = "DROP_PARTITION"
    INSERT = "INSERT"
    UPDATE_TABLE_STATISTICS = "UPDATE_TBL_COL_STAT_EVENT"
    DELETE_TABLE_STATISTICS = "DELETE_TBL_COL_STAT_EVENT"
    UPDATE_PARTITION_STATISTICS = "UPDATE_PART_COL_STAT_EVENT"
    DELETE_PARTITION_STATISTICS = "DELETE_PART_COL_STAT_EVENT"
    CREATE_FUNCTION = "CREATE_FUNCTION"
    DROP_FUNCTION = "DROP_FUNCTION"
    ADD_PRIMARY_KEY = "ADD_PRIMARYKEY"
    ADD_FOREIGN_KEY = "ADD_FOREIGNKEY"
    ADD_UNIQUE = "ADD_UNIQUECONSTRAINT"
    ADD_NOT_NULL = "ADD_NOTNULLCONSTRAINT"
    ADD_DEFAULT = "ADD_DEFAULTCONSTRAINT"
    ADD_CHECK = "ADD_CHECKCONSTRAINT"
    DROP_CONSTRAINT = "DROP_CONSTRAINT"
    OPEN_TXN = "OPEN_TXN"
    COMMIT_TXN = "COMMIT_TXN"
    ABORT_TXN = "ABORT_TXN"
    ALLOC_WRITE_ID = "ALLOC_WRITE_ID_EVENT"
    COMMIT_COMPACTION = "COMMIT_COMPACTION_EVENT"
    REQUEST_COMPACTION = "REQUEST_COMPACTION"
    FAIL_COMPACTION = "FAIL_COMPACTION"
    RELOAD = "RELOAD"


@dataclass(frozen=True, kw_only=True, slots=True)
class NotificationEvent:
    """One row of NOTIFICATION_LOG. ``type`` is text, so that unknown kinds pass through.

    ``message`` is as stored: plain JSON for format ``json-0.2``, base64 of gzipped JSON for
    ``gzip(json-2.0)``.
    """

    id: EventId
    time_seconds: int
    type: str
    catalog_name: str | None = DEFAULT_CATALOG
    database_name: str | None = None
    table_name: str | None = None
    message: str
    message_format: str = "json-0.2"


EventRow: TypeAlias = tuple[int, int, str, str | None, str | None, str | None, str, str]
"""An event as it is stored, for lists of thousands: id, seconds, type, catalog, database, table,
message, format of the message."""


def event_of(row: EventRow) -> NotificationEvent:
    """The record of a row."""
    number, seconds, kind, catalog, database, table, message, message_format = row
    return NotificationEvent(
        id=EventId(number),
        time_seconds=seconds,
        type=kind,
        catalog_name=catalog,
        database_name=database,
        table_name=table,
        message=message,
        message_format=message_format,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class NotificationRequest:
    """Which events to read: the first ``max_events`` after ``last_event_id``, in order, of those
    that all the rest selects. ``types`` empty: of every type."""

    last_event_id: EventId
    max_events: int | None = None
    types: frozenset[str] = frozenset()
    skipped_types: frozenset[str] = frozenset()
    catalog_name: str | None = None
    database_name: str | None = None
    table_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteNotification:
    """What a writer reports of the files it added under a transaction to a table or partition."""

    txn_id: int
    write_id: int
    database_name: str
    table_name: str
    partition_values: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    checksums: tuple[str, ...] = ()
    subdirectories: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class InsertNotification:
    """Files that came into a table that is not transactional, or into one partition of it."""

    database_name: str
    table_name: str
    catalog_name: str = DEFAULT_CATALOG
    partition_values: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    checksums: tuple[str, ...] = ()
    subdirectories: tuple[str, ...] = ()
    is_replace: bool = False
