"""Marks on partitions, by which clients let each other know that one is loaded."""

from __future__ import annotations

from collections.abc import Mapping

from hms_bridge.errors import MetaError
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.names import table_of
from hms_bridge.server.served_metastore import ServedMarks
from hms_bridge.wire.required import given
from hms_bridge.wire.structs import Struct

_LOAD_DONE = 1
"""The one member of Hive's PartitionEventType."""


class MarkCalls(Calls[ServedMarks]):
    """A partition that is marked need not be there."""

    @answers("markPartitionForEvent")
    def mark(self, args: Struct) -> None:
        self._store.mark_partition(table_of(args), _values(args), _kind(args))

    @answers("isPartitionMarkedForEvent")
    def is_marked(self, args: Struct) -> bool:
        return self._store.is_partition_marked(table_of(args), _values(args), _kind(args))


def _values(args: Struct) -> Mapping[str, str]:
    return given(args.part_vals, "part_vals")


def _kind(args: Struct) -> int:
    if args.eventType != _LOAD_DONE:
        raise MetaError(f"{args.eventType} is no kind of event; send {_LOAD_DONE} (LOAD_DONE)")
    return _LOAD_DONE
