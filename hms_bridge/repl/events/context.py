"""What the replay of an event is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump_reader import DumpedEvent, DumpReader
from hms_bridge.repl.replica import Replica


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplayContext:
    """The dump, the target, and which tables go away later in the dump.

    ``gone_at``: for each table, the last event of this dump that drops it or renames it away.
    """

    reader: DumpReader
    replica: Replica
    gone_at: Mapping[str, EventId]

    def table_or_gone(self, name: str, event: DumpedEvent) -> Table | None:
        """The target's table; None if it is not there because the source lost it later on.

        A bootstrap reads tables after the event it starts from, so events may tell of tables that
        were dropped or renamed before they could be dumped. Raises ReplError for a table that
        should be there.
        """
        table = self.replica.find_table(name)
        if table is None and self.gone_at.get(name, EventId(-1)) <= event.id:
            target = self.replica.names.target_database
            raise ReplError(
                f"{event.where}: table {target}.{name} is not on the target, and nothing in the "
                "dump drops it. Was it dropped or renamed there? Drop the target database and "
                "load a new bootstrap dump"
            )
        return table
