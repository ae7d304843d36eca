"""`_events_dump`: how far an incremental dump came, and whether its events stand in batches."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.side_texts import parsing
from hms_bridge.repl.format.texts import compact_json


@dataclass(frozen=True, kw_only=True, slots=True)
class EventsDump:
    """One `_events_dump` file. Hive's load refuses event directories without it."""

    last_event_id: EventId
    event_count: int
    is_batched: bool

    def format(self) -> str:
        """The file's text, as Hive writes it."""
        fields = {
            "lastReplId": self.last_event_id,
            "eventsDumpedCount": self.event_count,
            "eventsBatched": self.is_batched,
        }
        return compact_json(fields) + "\n"

    @classmethod
    def parse(cls, text: str, path: str = "_events_dump") -> EventsDump:
        """Read the file's text (a bare number too, as early versions wrote). Raises ReplError."""
        with parsing("JSON object with lastReplId", path, "dump again"):
            fields = json.loads(text)
            if isinstance(fields, int):
                fields = {"lastReplId": fields}
            return cls(
                last_event_id=EventId(int(fields["lastReplId"])),
                event_count=int(fields.get("eventsDumpedCount", 0)),
                is_batched=bool(fields.get("eventsBatched", False)),
            )
