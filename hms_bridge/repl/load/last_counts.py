"""Statistics that a dump notes again and again are replayed once.

A Hive's INSERT alters its table twice, to note rows and files (docs/hive/replication.md §35). Each
alteration carries the whole definition, so that of several that note statistics alone only the last
is needed; nobody reads between them what was counted of a transactional replica, which trusts no
such numbers (COLUMN_STATS_ACCURATE does not come along). What alters anything else is replayed.
"""

from __future__ import annotations

from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.noted_statistics import counts_alone
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.load.events.context import partition_key


class LastCounts:
    """Alterations in the order of the log. ``superseded``: those that note statistics alone, of a
    table or partition that a later one of them or any other alteration defines again."""

    def __init__(self) -> None:
        self._last: dict[str, EventId] = {}
        self.superseded: set[EventId] = set()

    @property
    def last(self) -> frozenset[EventId]:
        """Those that note statistics alone, and that nothing defines again."""
        return frozenset(self._last.values())

    def add(self, event: DumpedEvent) -> None:
        """The next ALTER_TABLE or ALTER_PARTITION. Raises ReplError for a damaged message."""
        payload = event.read(Payload)
        is_table = event.type == DumpType.ALTER_TABLE.value
        altered = payload.altered(is_table=is_table)
        if altered is None:
            return
        key = _key_of(altered[0], altered[2])
        last = self._last.pop(key, None)
        if last is not None:
            self.superseded.add(last)
        if counts_alone(payload, is_table=is_table):
            self._last[key] = event.id


def _key_of(table: Table, altered: Table | Partition) -> str:
    if isinstance(altered, Table):
        return table.name
    names = (column.name for column in table.partition_columns)
    return partition_key(table.name, zip(names, altered.values, strict=False))
