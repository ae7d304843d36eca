"""What the replay of an event needs to know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.reader import DumpedEvent, DumpReader
from hms_bridge.repl.load.events.prepared import PreparedCommit
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


@dataclass(kw_only=True, slots=True)
class DoneAhead:
    """What was done for commits before their turn. ``commits``: what they write; ``copied``: whose
    files are there."""

    commits: dict[EventId, PreparedCommit] = field(default_factory=dict)
    copied: set[EventId] = field(default_factory=set)

    def forget(self, table_name: str) -> None:
        """A table, or a partition of it, is altered: commits look at it again."""
        self.commits = {
            event_id: commit
            for event_id, commit in self.commits.items()
            if all(written.table.name != table_name for written in commit.tables)
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayContext:
    """The dump, the target, and when tables come and go in the dump. ``tables``: of the target that
    were looked up, where nothing alters them meanwhile; None: they are looked up each time."""

    reader: DumpReader
    replica: Replica
    changes: ObjectChanges
    ahead: DoneAhead = field(default_factory=DoneAhead)
    tables: dict[str, Table | None] | None = None

    def table_or_gone(self, name: str, event: DumpedEvent) -> Table | None:
        """The target's table; None if it is not there because the source lost it later on.

        A bootstrap reads tables after the event it starts from, so events may be of tables that
        were dropped or renamed before they could be dumped. Raises ReplError for a table that
        should be there.
        """
        table = self._find_table(name)
        if table is None and self.changes.next_change(name, event.id) is not ObjectChange.GONE:
            target = self.replica.names.target_database
            raise ReplError(
                f"{event.where}: table {target}.{name} is not on the target, and nothing in the "
                "dump drops it. Was it dropped or renamed there? " + self.replica.bring_anew(name)
            )
        return table

    def _find_table(self, name: str) -> Table | None:
        if self.tables is None:
            return self.replica.find_table(name)
        if name not in self.tables:
            self.tables[name] = self.replica.find_table(name)
        return self.tables[name]
