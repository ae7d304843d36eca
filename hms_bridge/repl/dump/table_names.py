"""What became of a table after an event: it kept its name, got another one, or was dropped."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.metadata_store import NotificationStore
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.event_source import EventRange, concerns, read_events
from hms_bridge.repl.format.event_payload import Payload


@dataclass(frozen=True, kw_only=True, slots=True)
class NameChange:
    """A table was renamed, or (``new_name`` None) dropped, or went to another database."""

    event_id: EventId
    name: str
    new_name: str | None


class TableNames:
    """Follows the tables of a database through the log, from an event until now; read once, and on
    as it grows.

    ``after`` may be moved back by a question about an earlier event.
    """

    def __init__(self, store: NotificationStore, database_name: str, after: EventId) -> None:
        self._store = store
        self._database_name = database_name
        self._begin_at(after)

    def _begin_at(self, after: EventId) -> None:
        self._after = self._until = after
        self._is_fresh = False
        self._changes: list[NameChange] = []

    def name_now(self, name: str, at: EventId) -> str | None:
        """The name now of what had a name at an event; None if it was dropped since."""
        return self.name_at(name, at, None)

    def name_at(self, name: str, at: EventId, until: EventId | None) -> str | None:
        """The name, after a later event, of what had a name at an earlier one; None if it was
        dropped between. ``until`` None: now.

        Raises EventGapError if the log does not go back so far any more.
        """
        if at < self._after:
            self._begin_at(at)
        for change in self._read():
            if until is not None and change.event_id > until:
                break
            if change.event_id > at and change.name == name:
                if change.new_name is None:
                    return None
                name = change.new_name
        return name

    def read_again(self) -> None:
        """Read the log on with the next question: the world has moved on."""
        self._is_fresh = False

    def _read(self) -> list[NameChange]:
        if not self._is_fresh:
            wanted = EventRange(after=self._until, until=self._store.get_current_event_id())
            self._changes += [
                change
                for event in read_events(self._store, wanted)
                if concerns(event, self._database_name)
                for change in [name_change(event)]
                if change is not None
            ]
            self._until = wanted.until
            self._is_fresh = True
        return self._changes


def name_change(event: NotificationEvent) -> NameChange | None:
    """What an event does to the name of its table; None if nothing."""
    if event.type == EventType.DROP_TABLE.value and event.table_name:
        return NameChange(event_id=event.id, name=event.table_name.lower(), new_name=None)
    if event.type == EventType.ALTER_TABLE.value:
        before, after = Payload.of(event).altered_tables()
        if before.full_name != after.full_name:
            is_here = before.database_name == after.database_name
            new_name = after.name if is_here else None
            return NameChange(event_id=event.id, name=before.name, new_name=new_name)
    return None
