"""What a database that takes its source's place remembers of it, as a property (HANDOVER).

Hive keeps the same pair of events, `repl.last.id` and `repl.target.last.id`, for its optimised
bootstrap (docs/hive/replication.md §29).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import Database
from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.texts import compact_json
from hms_bridge.repl.target_objects import HANDOVER


@dataclass(frozen=True, kw_only=True, slots=True)
class Handover:
    """``source_event``: up to here the database has what its source had; ``own_event``: the event
    of its own metastore that belongs to it, None until the promotion has come so far.

    ``beginning``: the dump of nothing from which dumps the other way go on; ``last_dump``: the
    newest of the source's that was loaded. ``is_pure``: nobody but loads could change the database.
    """

    policy: str
    source_event: EventId
    beginning: str
    last_dump: str | None
    is_pure: bool
    own_event: EventId | None = None

    def format(self) -> str:
        """JSON without blanks; None stays as null."""
        return compact_json(
            {
                "policy": self.policy,
                "sourceEvent": self.source_event,
                "ownEvent": self.own_event,
                "beginning": self.beginning,
                "lastDump": self.last_dump,
                "isPure": self.is_pure,
            }
        )

    @classmethod
    def of(cls, database: Database) -> Handover | None:
        """What a database remembers; None if it was never promoted. Raises ReplError for a value
        that is none."""
        text = database.parameters.get(HANDOVER, "")
        if not text:
            return None
        try:
            fields = json.loads(text)
            own = fields["ownEvent"]
            return cls(
                policy=str(fields["policy"]),
                source_event=EventId(int(fields["sourceEvent"])),
                own_event=None if own is None else EventId(int(own)),
                beginning=str(fields["beginning"]),
                last_dump=fields["lastDump"],
                is_pure=fields["isPure"] is True,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ReplError(
                f"{HANDOVER} of database {database.name} is damaged ({error}); "
                f"'repl end {database.name}' makes it a database of its own"
            ) from error
