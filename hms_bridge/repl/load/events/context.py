"""What the replay of an event needs to know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.reader import DumpedEvent, DumpReader
from hms_bridge.repl.load.replica import Replica


class ObjectChange(Enum):
    """What an event does to the name of a table or partition; only of partitions it matters whether
    they went under another name."""

    CREATED = "created"
    GONE = "gone"
    RENAMED = "renamed"


def partition_key(table: str, values: Iterable[tuple[str, str]]) -> str:
    """The key of a partition among the names of tables. A DROP has its columns in any order."""
    pairs = sorted(f"{column.lower()}={value}" for column, value in values)
    return "\0".join([table, *pairs])


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectChanges:
    """For each table and partition of a dump, the events that make, drop or rename it, in order."""

    by_name: Mapping[str, tuple[tuple[EventId, ObjectChange], ...]]

    def last_change(self, name: str, event_id: EventId) -> ObjectChange | None:
        """What happened last to a table before an event; None if nothing did in this dump."""
        earlier = [change for at, change in self.by_name.get(name, ()) if at < event_id]
        return earlier[-1] if earlier else None

    def next_change(self, name: str, event_id: EventId) -> ObjectChange | None:
        """What happens next to a table after an event; None if nothing does in this dump."""
        later = (change for at, change in self.by_name.get(name, ()) if at > event_id)
        return next(later, None)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayContext:
    """The dump, the target, and when tables come and go in the dump."""

    reader: DumpReader
    replica: Replica
    changes: ObjectChanges

    def table_or_gone(self, name: str, event: DumpedEvent) -> Table | None:
        """The target's table; None if it is not there because the source lost it later on.

        A bootstrap reads tables after the event it starts from, so events may be of tables that
        were dropped or renamed before they could be dumped. Raises ReplError for a table that
        should be there.
        """
        table = self.replica.find_table(name)
        if table is None and self.changes.next_change(name, event.id) is not ObjectChange.GONE:
            target = self.replica.names.target_database
            raise ReplError(
                f"{event.where}: table {target}.{name} is not on the target, and nothing in the "
                "dump drops it. Was it dropped or renamed there? " + self.replica.bring_anew(name)
            )
        return table
