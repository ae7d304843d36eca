"""The `_metadata` of events: tables and partitions, as a dump has them."""

from __future__ import annotations

from hms_bridge.errors import MetaError, ReplError
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.txn import WriteEvent
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.object_metadata import (
    SCOPE_ALL,
    SCOPE_METADATA,
    ReplicationSpec,
    TableMetadata,
)
from hms_bridge.repl.format.stored_message import event_text


def ddl_metadata(
    event: NotificationEvent,
    table: Table,
    text: str,
    partitions: tuple[str, ...] = (),
    *,
    is_data_included: bool,
) -> str:
    """The text of a table, as an event that defines it or its partitions leaves it."""
    has_data = is_data_included and not table.is_any_view
    spec = ReplicationSpec(
        scope=SCOPE_ALL if has_data else SCOPE_METADATA,
        event_id=event.id,
        last_event_id=event.id,
        is_replace=True,
    )
    return TableMetadata(spec=spec, table=text, partitions=partitions).format()


def commit_metadata(event: NotificationEvent, writes: tuple[WriteEvent, ...]) -> str:
    """The text of a table that a commit wrote to."""
    spec = ReplicationSpec(event_id=event.id, last_event_id=event.id, is_replace=False)
    partitions = tuple(write.partition_object for write in writes if write.partition_object)
    return TableMetadata(spec=spec, table=writes[-1].table_object, partitions=partitions).format()


def name_of_partition(event: NotificationEvent, table: Table, partition: Partition) -> str:
    """The name of a partition. Raises ReplError for one without the values that it needs."""
    try:
        return partition_name(table.partition_columns, partition.values)
    except MetaError as error:
        raise ReplError(f"{event_text(event)}: {error}") from error


def partition_files(payload: Payload) -> dict[str, tuple[str, ...]]:
    """Files of each partition that an ADD PARTITION names."""
    files: dict[str, tuple[str, ...]] = {}
    for entry in payload.fields.get("partitionFiles") or []:
        if not isinstance(entry, dict) or not isinstance(entry.get("partitionName"), str):
            raise payload.wrong("partitionFiles names no partition")
        files[entry["partitionName"]] = tuple(str(file) for file in entry.get("files") or [])
    return files
